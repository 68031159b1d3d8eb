package field

import (
	"fmt"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
	"github.com/penstock/penstock/transforms/geometry"
)

// maskField decodes mask files to class numbers, for masks that no image of the sample moves; all must have one
// size. With kept they are stored as files, as masks of instances always are.
type maskField struct {
	copyField
	kept  bool              // store files
	first transforms.Raster // size and type of the first mask, without pixels
}

func (f *maskField) NewWorker() Worker {
	return &maskWorker{maskField: f, decoder: imagefile.New(imagefile.Options{})}
}

// maskWorker is the Worker of a maskField.
type maskWorker struct {
	*maskField
	decoder *imagefile.Decoder
	numbers []byte // memory for widened numbers
}

func (w *maskWorker) Probe(_ string, value []byte) (store.Field, error) {
	if w.kept && w.none(value) {
		return w.field.Field, nil
	}
	if w.kept {
		return w.field.Field, w.check(value)
	}
	m, err := w.decoder.Numbers(value)
	if err != nil {
		return w.field.Field, err
	}
	w.first = transforms.Raster{W: m.W, H: m.H, DType: m.DType}
	out := w.field.Field
	out.Spec = geometry.Follower{In: w.field.Spec, DType: m.DType}.Output(transforms.Info{W: m.W, H: m.H})
	out.Storage = m.DType.Descr()
	return out, nil
}

// check returns an error for a file that is no mask.
func (w *maskWorker) check(value []byte) error {
	if _, ok := w.decoder.Bits(value); ok {
		return nil
	}
	_, err := w.decoder.Numbers(value)
	return err
}

// none reports whether a value is the masks of no instances.
func (w *maskWorker) none(value []byte) bool { return w.field.Instances != "" && len(value) == 0 }

func (w *maskWorker) Do(name string, dst, value []byte) (out []byte, err error) {
	if w.kept && w.none(value) {
		return dst[:0], nil
	}
	if w.kept {
		if err := w.check(value); err != nil {
			return dst, &SampleError{err}
		}
		return append(dst[:0], value...), nil
	}
	m, err := w.decoder.Numbers(value)
	if err != nil {
		return dst, &SampleError{err}
	}
	if m.W != w.first.W || m.H != w.first.H {
		return dst, &SampleError{fmt.Errorf("the mask is %dx%d pixels and the first one %dx%d; keep masks of several sizes "+
			"as files, with --keep-encoded", m.W, m.H, w.first.W, w.first.H)}
	}
	// Masks of a set may have 8 or 16 bits by their largest number; the first mask decides, and smaller types
	// are widened.
	if m.DType != w.first.DType {
		if m.Pix, err = geometry.Widen(&w.numbers, m, w.first.DType); err != nil {
			return dst, &SampleError{err}
		}
	}
	return append(dst[:0], m.Pix...), nil
}

// isMaskFile reports whether values are mask files.
func isMaskFile(f source.Field) bool { return f.Content == tensor.Mask && f.IsBytes() }
