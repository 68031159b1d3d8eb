package external

import (
	"fmt"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Stored is the Head of a function that takes stored records without a change. Each record of a
// ragged field has its own number of rows.
type Stored struct{}

// Output returns in, with the rows of a record as its first axis.
func (Stored) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.Ragged {
		in.Ragged, in.Shape = false, append(tensor.Shape{unknown}, in.Shape...)
	}
	return in, nil
}

// Worker returns a function that copies the stored bytes. The rows of a ragged record are its first
// axis.
func (Stored) Worker(in tensor.Spec, _ int) (HeadFunc, error) {
	row := in.RecordBytes()
	return func(room func(n int) ([]byte, error), src []byte, _ loader.Record) (axes [2]int, err error) {
		if in.Ragged {
			axes[0] = len(src) / row
		}
		dst, err := room(len(src))
		copy(dst, src)
		return axes, err
	}, nil
}

// Made is the Head of a function that takes the result of a Transform, which has one shape.
type Made struct{ loader.Transform }

// Worker returns a function that lets the Transform write into the memory of room.
func (m Made) Worker(in tensor.Spec, id int) (HeadFunc, error) {
	out, err := m.Output(in)
	if err != nil {
		return nil, err
	}
	do, err := m.Transform.Worker(in, id)
	size := out.RecordBytes()
	return func(room func(n int) ([]byte, error), src []byte, r loader.Record) (axes [2]int, err error) {
		dst, err := room(size)
		if err != nil {
			return axes, err
		}
		return axes, do(dst, src, r)
	}, err
}

// Decoded is the Head of a function that takes decoded image files, each with its own size.
type Decoded struct{ Pipeline *transforms.Pipeline }

// decodedSizes are widths and heights of images of many aspects. If a pipeline makes the same size
// of all of them, its result is taken to have one size.
var decodedSizes = [][2]int{{500, 375}, {375, 500}, {1920, 1080}, {4000, 3000}, {61, 67}}

// Output returns the type of the pixels. Height and width are unknown unless the pipeline makes one
// size.
func (d Decoded) Output(in tensor.Spec) (tensor.Spec, error) {
	var out transforms.Info
	var err error
	found, same := false, true
	for _, size := range decodedSizes {
		o, failed := d.Pipeline.Output(transforms.Info{W: size[0], H: size[1], C: 3})
		if failed != nil {
			err = failed
			continue
		}
		same = same && (!found || o == out)
		out, found = o, true
	}
	if !found {
		return in, err
	}
	spec := tensor.Spec{Name: in.Name, DType: out.DType, Shape: out.Shape(), Layout: tensor.HWC}
	if out.DType == tensor.Invalid {
		spec.DType = tensor.Uint8
	}
	first := 0
	if out.Layout == transforms.CHW {
		spec.Layout, first = tensor.CHW, 1
	}
	if !same {
		spec.Shape[first], spec.Shape[first+1] = unknown, unknown
	}
	return spec, nil
}

// Worker returns a function with a decoder of its own.
func (d Decoded) Worker(tensor.Spec, int) (HeadFunc, error) {
	run, decoder := d.Pipeline.Runner(), imagefile.New(imagefile.Options{})
	return func(room func(n int) ([]byte, error), src []byte, r loader.Record) (axes [2]int, err error) {
		m, err := decoder.Open(src)
		if err != nil {
			return axes, err
		}
		out, err := d.Pipeline.Output(transforms.InfoOf(m))
		if err != nil {
			return axes, err
		}
		dst, err := room(out.Bytes())
		if err != nil {
			return axes, err
		}
		return [2]int{out.H, out.W}, run.DoRand(dst, m, r.Rand())
	}, nil
}

// Sample makes the input of the first function for one record, and returns its shape. bytes is
// memory of Places, which the caller frees, also after an error if it is not nil.
func (p *Pool) Sample(head Head, in tensor.Spec, src []byte, r loader.Record) (bytes []byte, shape tensor.Shape,
	err error) {
	out, err := head.Output(in)
	if err != nil {
		return nil, nil, err
	}
	do, err := head.Worker(in, -1)
	if err != nil {
		return nil, nil, err
	}
	axes, err := do(func(n int) (_ []byte, err error) {
		if bytes, err = p.places.Alloc(max(1, n)); err != nil {
			return nil, err
		}
		bytes = bytes[:n:n]
		return bytes, nil
	}, src, r)
	if err != nil {
		return bytes, nil, err
	}
	shape = append(tensor.Shape(nil), out.Shape...)
	next := 0
	for i, n := range shape {
		if n < 0 {
			shape[i] = axes[next]
			next++
		}
	}
	return bytes, shape, nil
}

// Floats is the Transform of pixels that are float32 already, by the steps that end a pipeline:
// order of axes, mean and standard deviation, and another float type. It computes in float32, as
// torchvision does.
type Floats struct {
	DType     tensor.DType // of the result
	Layout    string
	Mean, Std []float64 // one for each channel, or one for all; nil normalizes nothing
}

// FloatsOf returns the Floats for some steps of a pipeline. Steps that work on bytes only are an
// error.
func FloatsOf(in tensor.Spec, steps []transforms.Transform) (Floats, error) {
	f := Floats{DType: in.DType, Layout: in.Layout}
	if in.DType != tensor.Float32 || len(in.Shape) != 3 || in.Layout == "" {
		return f, fmt.Errorf("is %v%v", in.DType, in.Shape)
	}
	channels := in.Shape[2]
	if in.Layout == tensor.CHW {
		channels = in.Shape[0]
	}
	for _, t := range steps {
		switch t := t.(type) {
		case transforms.ToLayout:
			f.Layout = tensor.HWC
			if t.Layout == transforms.CHW {
				f.Layout = tensor.CHW
			}
		case transforms.ToTensor:
			f.Layout = tensor.CHW
		case transforms.ConvertDType:
			if t.DType == tensor.Uint8 {
				return f, fmt.Errorf("is float32, and cannot become uint8")
			}
			f.DType = t.DType
		case transforms.Normalize:
			if f.Mean != nil {
				return f, fmt.Errorf("is normalized twice")
			}
			if n := len(t.Mean); n != 1 && n != channels {
				return f, fmt.Errorf("has %d channels, and Normalize %d means", channels, n)
			}
			f.Mean, f.Std = t.Mean, t.Std
		default:
			return f, fmt.Errorf("is float32, which %T does not work on", t)
		}
	}
	return f, nil
}

// Output returns type and shape of the result.
func (f Floats) Output(in tensor.Spec) (tensor.Spec, error) {
	s := in.Shape
	switch {
	case in.Layout == f.Layout:
	case f.Layout == tensor.CHW:
		s = tensor.Shape{s[2], s[0], s[1]}
	default:
		s = tensor.Shape{s[1], s[2], s[0]}
	}
	return tensor.Spec{Name: in.Name, DType: f.DType, Shape: s, Layout: f.Layout}, nil
}

// Worker returns a function for one goroutine, with a buffer if the result is not float32.
func (f Floats) Worker(in tensor.Spec, _ int) (loader.RecordFunc, error) {
	pixels, channels := in.Shape[0]*in.Shape[1], in.Shape[2]
	if in.Layout == tensor.CHW {
		pixels, channels = in.Shape[1]*in.Shape[2], in.Shape[0]
	}
	mean, std := make([]float32, channels), make([]float32, channels)
	for c := range channels {
		std[c] = 1
		if f.Mean != nil {
			mean[c], std[c] = float32(f.Mean[min(c, len(f.Mean)-1)]), float32(f.Std[min(c, len(f.Std)-1)])
		}
	}
	// The value of channel c of pixel i is at i*step + c*plane.
	strides := func(layout string) (step, plane int) {
		if layout == tensor.CHW {
			return 1, pixels
		}
		return channels, 1
	}
	fromStep, fromPlane := strides(in.Layout)
	toStep, toPlane := strides(f.Layout)
	if !f.DType.IsFloat() {
		return nil, fmt.Errorf("pixels of floats cannot become %v", f.DType)
	}
	var wide []float32 // results before they are converted to another type
	if f.DType != tensor.Float32 {
		wide = make([]float32, pixels*channels)
	}
	return func(dst, src []byte, _ loader.Record) error {
		x := tensor.As[float32](tensor.Of(tensor.Spec{DType: tensor.Float32}, pixels*channels, src))
		out := wide
		if wide == nil {
			out = tensor.As[float32](tensor.Of(tensor.Spec{DType: tensor.Float32}, pixels*channels, dst))
		}
		for c := range channels {
			m, s := mean[c], std[c]
			from, to := c*fromPlane, c*toPlane
			for range pixels {
				out[to] = (x[from] - m) / s
				from, to = from+fromStep, to+toStep
			}
		}
		if wide != nil {
			tensor.PutFloats(dst, f.DType, out)
		}
		return nil
	}, nil
}
