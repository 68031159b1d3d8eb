package transforms

import (
	"encoding/binary"

	"github.com/penstock/penstock/tensor"
)

// placement maps the elements of a result to the elements of an array, as strides do in NumPy: the
// element at an index comes from offset plus the sum of index times stride. Flips negate strides,
// turns exchange them, and crops move the offset, so that any sequence of these moves is one
// placement, and one copy.
type placement struct {
	shape   tensor.Shape
	strides []int
	offset  int
}

// reset restores the identity mapping: every element stays in place.
func (p *placement) reset(shape tensor.Shape) {
	p.shape = append(p.shape[:0], shape...)
	p.strides = append(p.strides[:0], shape...)
	n := 1
	for k := len(shape) - 1; k >= 0; k-- {
		p.strides[k] = n
		n *= shape[k]
	}
	p.offset = 0
}

// arrayMover is an ArrayTransform that only moves elements and does not look at their values. Such
// a transform works on the stored bytes of any type.
type arrayMover interface {
	ArrayTransform
	move(p *placement, in tensor.Spec, rnd *Rand) error
}

var _, _, _, _ arrayMover = RandomFlip{}, RandomRot90{}, RandomSpatialCrop{}, CenterSpatialCrop{}

// remakeMoved applies a single move to an array of numbers.
func remakeMoved(t arrayMover, dst, src []float64, in tensor.Spec, rnd *Rand) error {
	var p placement
	p.reset(in.Shape)
	if err := t.move(&p, in, rnd); err != nil {
		return err
	}
	p.floats(dst, src)
	return nil
}

// floats copies an array of float64 by the placement.
func (p *placement) floats(dst, src []float64) {
	p.rows(func(to, from, n, step int) {
		if step == 1 {
			copy(dst[to:to+n], src[from:])
			return
		}
		for i := range dst[to : to+n] {
			dst[to+i] = src[from+i*step]
		}
	})
}

// bytes copies an array of elements of size bytes by the placement. Each size has a loop of its
// own: one load and one store per element, where a copy of a few bytes would be a call.
func (p *placement) bytes(dst, src []byte, size int) {
	le := binary.LittleEndian
	p.rows(func(to, from, n, step int) {
		out := dst[to*size : (to+n)*size]
		if step == 1 {
			copy(out, src[from*size:])
			return
		}
		step *= size
		from *= size
		switch size {
		case 1:
			for i := range out {
				out[i] = src[from]
				from += step
			}
		case 2:
			for i := 0; i+2 <= len(out); i += 2 {
				le.PutUint16(out[i:i+2:i+2], le.Uint16(src[from:from+2:from+2]))
				from += step
			}
		case 4:
			for i := 0; i+4 <= len(out); i += 4 {
				le.PutUint32(out[i:i+4:i+4], le.Uint32(src[from:from+4:from+4]))
				from += step
			}
		default:
			for i := 0; i+8 <= len(out); i += 8 {
				le.PutUint64(out[i:i+8:i+8], le.Uint64(src[from:from+8:from+8]))
				from += step
			}
		}
	})
}

// rows calls row for each row along the last axis: n elements go to consecutive places from to on,
// and come from places that are step apart. A step of 1 lets the caller copy a row at once.
func (p *placement) rows(row func(to, from, n, step int)) {
	last := len(p.shape) - 1
	if last < 0 {
		row(0, p.offset, 1, 1)
		return
	}
	p.rowsOf(0, 0, p.offset, row)
}

func (p *placement) rowsOf(axis, to, from int, row func(to, from, n, step int)) int {
	n, step := p.shape[axis], p.strides[axis]
	if axis == len(p.shape)-1 {
		row(to, from, n, step)
		return to + n
	}
	for i := range n {
		to = p.rowsOf(axis+1, to, from+i*step, row)
	}
	return to
}
