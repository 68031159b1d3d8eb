package transforms

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/pixel"
)

// MaskMover moves masks by a Moves: each pixel of the result gets the number of one pixel of the
// mask, never a blend. Resizes, flips, crops and borders move whole rows and columns, so that they
// are composed on two lists of row and column numbers, and the mask is copied once. Only warps need
// a pass of their own. Buffers grow to the largest mask. A MaskMover serves one goroutine; the zero
// value is ready.
type MaskMover struct {
	cols, rows []int32   // where each column and row of the mask so far is taken from; -1 is filled
	more       []int32   // memory for the next of these
	between    [2][]byte // masks between warps
	field      []float32 // of an elastic move
}

// Move writes the moved mask to dst, which has the size that m.Size returns. The elements of src
// and dst have size bytes: 1, 2, 4 or 8.
func (k *MaskMover) Move(dst, src []byte, size int, m *Moves) error {
	w, h := m.Size()
	if len(src) != m.w*m.h*size {
		return fmt.Errorf("the mask has %d bytes, and the image %dx%d pixels, which need %d", len(src), m.w, m.h,
			m.w*m.h*size)
	}
	if len(dst) != w*h*size {
		return fmt.Errorf("the mask becomes %dx%d pixels, and there are %d bytes for it, not %d", w, h, len(dst), w*h*size)
	}
	if size != 1 && size != 2 && size != 4 && size != 8 {
		return fmt.Errorf("masks cannot have elements of %d bytes", size)
	}
	fill := uint64(0)
	if m.options.MaskFill != nil {
		fill = uint64(*m.options.MaskFill)
	}
	w = m.w // of the mask that cols and rows lead to
	k.cols, k.rows = identity(k.cols, m.w), identity(k.rows, m.h)
	for i := range m.list {
		d, cw, ch := &m.list[i], len(k.cols), len(k.rows)
		switch d.kind {
		case moveAffine, movePerspective, moveElastic:
			whole := k.room(0, cw*ch*size)
			gather(whole, src, w, size, k.cols, k.rows, fill)
			src, w = k.room(1, d.w*d.h*size), d.w
			k.warp(src, whole, size, d, cw, ch, fill)
			k.cols, k.rows = identity(k.cols, d.w), identity(k.rows, d.h)
		case moveClamp, moveSanitize, moveClampPoints, moveSanitizePoints:
		default:
			k.cols, k.more = d.line(k.more, k.cols, 0, d.w, m.options.MaskResize), k.cols
			k.rows, k.more = d.line(k.more, k.rows, 1, d.h, m.options.MaskResize), k.rows
		}
	}
	gather(dst, src, w, size, k.cols, k.rows, fill)
	return nil
}

// room returns n bytes of one of two buffers, which alternate between warps.
func (k *MaskMover) room(which, n int) []byte {
	k.between[which] = pixel.Grow(k.between[which], n)
	return k.between[which]
}

// identity fills line with 0 to n-1: each row or column comes from its own place.
func identity(line []int32, n int) []int32 {
	line = pixel.Grow(line, n)
	for i := range line {
		line[i] = int32(i)
	}
	return line
}

// line composes a move with the lists before it. It returns, in memory, where each of the n places
// along an axis (0 across, 1 down) comes from, if the places before the move came from line. -1 is
// a place that is filled.
func (d *move) line(memory, line []int32, axis, n int, resize string) []int32 {
	out := pixel.Grow(memory, n)
	last := len(line) - 1
	switch {
	case d.kind == moveResize:
		nearestLine(out, line, resize)
	case d.kind == moveFlipH && axis == 0, d.kind == moveFlipV && axis == 1:
		for i := range out {
			out[i] = line[last-i]
		}
	case d.kind == moveCrop, d.kind == moveIoUCrop:
		copy(out, line[d.at[axis]:])
	case d.kind == movePad:
		for i := range out {
			from := i - d.at[axis]
			switch {
			case from >= 0 && from <= last:
				out[i] = line[from]
			case d.mode == PadConstant:
				out[i] = -1
			default:
				out[i] = line[d.mode.from(from, last+1)]
			}
		}
	default:
		copy(out, line)
	}
	return out
}

// nearestLine resizes a list of places as torch's interpolate does, in torch's float32 arithmetic:
// other rounding would shift single rows of large masks.
func nearestLine(out, line []int32, mode string) {
	scale := float32(len(line)) / float32(len(out))
	for i := range out {
		at := float32(float32(i)+0.5) * scale
		if mode == "nearest" {
			at = float32(i) * scale
		}
		out[i] = line[min(int(at), len(line)-1)]
	}
}

// gather copies the elements at rows and cols of a mask to dst. The mask's rows have w elements of
// size bytes.
func gather(dst, mask []byte, w, size int, cols, rows []int32, fill uint64) {
	n := len(cols) * size
	for _, y := range rows {
		out := dst[:n]
		dst = dst[n:]
		if y < 0 {
			for x := range cols {
				putElement(out[x*size:], size, fill)
			}
			continue
		}
		row := mask[int(y)*w*size:][:w*size]
		switch size {
		case 1:
			for x, from := range cols {
				if from < 0 {
					out[x] = byte(fill)
				} else {
					out[x] = row[from]
				}
			}
		default:
			for x, from := range cols {
				if from < 0 {
					putElement(out[x*size:], size, fill)
				} else {
					copyElement(out[x*size:], row[int(from)*size:], size)
				}
			}
		}
	}
}

func putElement(to []byte, size int, v uint64) {
	switch size {
	case 1:
		to[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(to, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(to, uint32(v))
	default:
		binary.LittleEndian.PutUint64(to, v)
	}
}

func copyElement(to, from []byte, size int) {
	switch size {
	case 1:
		to[0] = from[0]
	case 2:
		binary.LittleEndian.PutUint16(to, binary.LittleEndian.Uint16(from))
	case 4:
		binary.LittleEndian.PutUint32(to, binary.LittleEndian.Uint32(from))
	default:
		binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(from))
	}
}

// warp fills dst from src, which is w x h. Each pixel of dst gets the number of the pixel that its
// center comes from, in the float32 arithmetic of torchvision's grids.
func (k *MaskMover) warp(dst, src []byte, size int, d *move, w, h int, fill uint64) {
	g := newGrid(d, w, h)
	var dx, dy []float32
	if d.kind == moveElastic {
		dx, dy = k.displacement(d)
	}
	across, down := centers(d.w), centers(d.h)
	for y := range d.h {
		for x := range d.w {
			var u, v float32
			switch d.kind {
			case moveAffine:
				u, v = g.affine(x, y)
			case movePerspective:
				u, v = g.perspective(x, y)
			default:
				u, v = across.at(x)+dx[y*d.w+x], down.at(y)+dy[y*d.w+x]
			}
			px := int(math.RoundToEven(float64(toPixels(u, w))))
			py := int(math.RoundToEven(float64(toPixels(v, h))))
			out := dst[(y*d.w+x)*size:]
			if px < 0 || py < 0 || px >= w || py >= h {
				putElement(out, size, fill)
			} else {
				copyElement(out, src[(py*w+px)*size:], size)
			}
		}
	}
}

// grid is torchvision's _affine_grid or _perspective_grid: it maps a pixel of the result to a place
// in the source between -1 and 1, in float32.
type grid struct {
	a    [6]float32
	z    [3]float32
	w, h float32 // the center of the image after
}

// newGrid returns the sampling grid of a warp of w x h pixels.
func newGrid(d *move, w, h int) (g grid) {
	half := [2]float32{0.5 * float32(w), 0.5 * float32(h)}
	if d.kind == movePerspective {
		half = [2]float32{0.5 * float32(d.w), 0.5 * float32(d.h)}
	}
	for i := range g.a {
		g.a[i] = float32(d.a[i]) / half[i/3]
	}
	g.z = [3]float32{float32(d.a[6]), float32(d.a[7]), 1}
	g.w, g.h = float32(d.w-1)*0.5, float32(d.h-1)*0.5
	return g
}

func (g *grid) affine(x, y int) (u, v float32) {
	px, py := float32(x)-g.w, float32(y)-g.h
	return product(g.a[:3], px, py), product(g.a[3:], px, py)
}

func (g *grid) perspective(x, y int) (u, v float32) {
	px, py := float32(x)+0.5, float32(y)+0.5
	z := product(g.z[:], px, py)
	return product(g.a[:3], px, py)/z - 1, product(g.a[3:], px, py)/z - 1
}

// product multiplies a row of a matrix by (x, y, 1). Each step is rounded once, as torch's fused
// multiplication and addition does.
func product(a []float32, x, y float32) float32 {
	s := x * a[0]
	s = float32(float64(y)*float64(a[1]) + float64(s))
	return s + a[2]
}

// displacement returns how far each pixel moves in an elastic move, in halves of width and height.
// The field is computed again from its seed: the image's own field is in the image's scratch
// memory, and gone by then.
func (k *MaskMover) displacement(d *move) (dx, dy []float32) {
	args := OpArgs{d.a[0], d.a[1], d.a[2], d.a[3], 6: d.a[4], 7: d.a[5]}
	k.field = pixel.Grow(k.field, elasticRoom(d.w, d.h, args))
	return elasticField(d.w, d.h, args, k.field)
}
