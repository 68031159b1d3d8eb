package field

import (
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Places converts boxes and keypoints of samples to the form of datasets: float32 in pixels, boxes as left, top,
// right and bottom. It serves one goroutine and keeps its memory.
type Places struct {
	fields []source.Field
	images []int // by field: position of its image; -1 for none
	orient bool
	values [][]byte
	x      []float64
}

// NewPlaces returns a Places for the fields of a source; nil if there are no boxes and keypoints.
func (c Options) NewPlaces(fields []source.Field) *Places {
	p := &Places{fields: fields, images: make([]int, len(fields)), orient: c.Rules.Orient,
		values: make([][]byte, len(fields))}
	needed := false
	var schema store.Schema
	for _, f := range fields {
		schema.Fields = append(schema.Fields, f.Field)
	}
	for i, f := range fields {
		p.images[i] = -1
		if f.Content != tensor.Boxes && f.Content != tensor.Keypoints {
			continue
		}
		needed = true
		if at, err := schema.ImageOf(f.Spec); err == nil {
			p.images[i] = at
		}
	}
	if !needed {
		return nil
	}
	return p
}

// Convert replaces the values of boxes and keypoints in v.
func (p *Places) Convert(v *source.Values) error {
	for i, f := range p.fields {
		if f.Content != tensor.Boxes && f.Content != tensor.Keypoints {
			continue
		}
		// Boxes have 4 numbers, as in datasets; the source's boxes may have 5 or 8.
		n, size := f.Shape[len(f.Shape)-1], f.RecordBytes()
		if f.Content == tensor.Boxes {
			n, size = f.Boxes.Numbers(), size/4*f.Boxes.Numbers()
		}
		b := v.Get(i)
		if len(b)%size != 0 || !f.Ragged && len(b) != size {
			return fmt.Errorf("%s: %w", f.Name, source.ValueError("%d bytes are not rows of %d", len(b), size))
		}
		p.x = tensor.AppendFloats(p.x[:0], f.DType, b)
		if f.Boxes.Relative {
			w, h, err := p.size(v, i)
			if err != nil {
				return fmt.Errorf("%s: relative to its image: %w", f.Name, err)
			}
			for k := range p.x {
				// The third number of a keypoint is its visibility.
				if at := k % n; at == 2 && f.Content == tensor.Keypoints {
					continue
				} else if at%2 == 0 {
					p.x[k] *= float64(w)
				} else {
					p.x[k] *= float64(h)
				}
			}
		}
		if f.Content == tensor.Boxes {
			p.x = corners(p.x, f.Boxes)
		}
		out := slices.Grow(p.values[i][:0], 4*len(p.x))[:4*len(p.x)]
		tensor.PutFloats(out, tensor.Float32, p.x)
		if f.Content == tensor.Boxes {
			if err := transforms.CheckBoxes(tensor.AppendFloats[float32](nil, tensor.Float32, out)); err != nil {
				return fmt.Errorf("%s: %w", f.Name, source.ValueError("%w", err))
			}
		}
		// The memory is of p, as the converted values may be larger than the stored ones.
		p.values[i] = out
		v.Borrow(i, out)
	}
	return nil
}

// corners converts boxes in place to left, top, right and bottom. A rotated box becomes the smallest upright box
// around its corners.
func corners(x []float64, format source.BoxFormat) []float64 {
	n := format.Numbers()
	for i := 0; i+n <= len(x); i += n {
		b := x[i : i+n]
		switch format.Layout {
		case "xywh":
			b[2], b[3] = b[0]+b[2], b[1]+b[3]
		case "cxcywh":
			b[0], b[1], b[2], b[3] = b[0]-b[2]/2, b[1]-b[3]/2, b[0]+b[2]/2, b[1]+b[3]/2
		case "xywhr", "cxcywhr":
			points := turned(b, format.Layout == "cxcywhr")
			copy(x[i/n*4:], around(points[:]))
		case "xyxyxyxy":
			copy(x[i/n*4:], around(b))
		}
	}
	return x[:len(x)/n*4]
}

// turned returns the corners of a rotated box: a corner or the center, width, height, and the angle in degrees
// counterclockwise.
func turned(b []float64, center bool) (corners [8]float64) {
	sin, cos := math.Sincos(b[4] * math.Pi / 180)
	right, down := [2]float64{b[2] * cos, -b[2] * sin}, [2]float64{b[3] * sin, b[3] * cos}
	for axis := range 2 {
		at := b[axis]
		if center {
			at -= (right[axis] + down[axis]) / 2
		}
		corners[axis], corners[2+axis] = at, at+right[axis]
		corners[4+axis], corners[6+axis] = at+right[axis]+down[axis], at+down[axis]
	}
	return corners
}

// around returns the smallest box around four points.
func around(p []float64) []float64 {
	return []float64{min(p[0], p[2], p[4], p[6]), min(p[1], p[3], p[5], p[7]),
		max(p[0], p[2], p[4], p[6]), max(p[1], p[3], p[5], p[7])}
}

// size returns the width and height of the image that a field is on.
func (p *Places) size(v *source.Values, field int) (w, h int, err error) {
	at := p.images[field]
	if at < 0 {
		return 0, 0, source.ValueError("there is none, or several")
	}
	if f := p.fields[at]; !f.Image() {
		info := pixels(f.Field)
		return info.W, info.H, nil
	}
	c, err := imagefile.ReadConfig(v.Get(at))
	if err != nil {
		return 0, 0, err
	}
	w, h = c.Opened(p.orient)
	return w, h, nil
}
