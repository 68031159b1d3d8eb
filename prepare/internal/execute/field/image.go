package field

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// imageField makes pixels of one size of files of images, or of pixels.
type imageField struct {
	pipeline *transforms.Pipeline
	field    func(out transforms.Info) store.Field
	opener   func() opener
	out      transforms.Info // of every image
	first    shaped          // the sample that out comes from

	asked     Options // for files: without the defaults of images of 8 bits
	ownRecipe bool    // transforms are given as such
	budget    *decodeBudget
	classes   bool  // values may be classes, so that files with a palette are refused
	deep      *deep // set by a first file that 8-bit gray or RGB cannot hold: all others are like it
}

// opener gives the pixels of a value. It serves one goroutine.
type opener interface {
	open(value []byte) (transforms.Source, error)
}

// shaped is a sample and the size of its image, for messages.
type shaped struct {
	name string
	w, h int
}

func (f *imageField) NewWorker() Worker {
	return &imageWorker{imageField: f, opener: f.opener(), runner: f.pipeline.Runner()}
}

// imageWorker is a worker's part of an imageField.
type imageWorker struct {
	*imageField
	opener  opener
	runner  *transforms.Runner
	checked transforms.Info // the last input whose output was found to fit
}

func (w *imageWorker) Probe(name string, value []byte) (store.Field, error) {
	if err := w.checkClasses(value); err != nil {
		return store.Field{}, err
	}
	defer w.room(value)()
	if files, ok := w.opener.(*fileOpener); ok && files.isDeep(value) {
		return w.probeDeep(files, name, value)
	}
	if w.asked.DType == tensor.Uint16 {
		return store.Field{}, errors.New("has 8 bits a sample; --dtype uint16 is for images of 16")
	}
	src, err := w.opener.open(value)
	if err != nil {
		return store.Field{}, err
	}
	in := transforms.InfoOf(src)
	out, err := w.pipeline.Output(in)
	if err != nil {
		return store.Field{}, err
	}
	field := w.field(out)
	rec := store.NewRecord(store.Schema{Fields: []store.Field{field}})
	if err := w.runner.Do(rec.Values[0], src); err != nil {
		return store.Field{}, err
	}
	w.out, w.first, w.deep = out, shaped{name, in.W, in.H}, nil
	return field, nil
}

func (w *imageWorker) Do(name string, dst, value []byte) (out []byte, bad, fatal error) {
	if err := w.checkClasses(value); err != nil {
		return dst, err, nil
	}
	defer w.room(value)()
	if files, ok := w.opener.(*fileOpener); ok {
		if isDeep := files.isDeep(value); isDeep || w.deep != nil {
			return w.doDeep(files, isDeep, name, dst, value)
		}
	}
	src, err := w.opener.open(value)
	if err != nil {
		return dst, err, nil
	}
	if bad, fatal = w.check(name, transforms.InfoOf(src)); bad != nil || fatal != nil {
		return dst, bad, fatal
	}
	return dst, w.runner.Do(dst, src), nil
}

// room waits until there is memory for the pixels of a file.
func (w *imageWorker) room(value []byte) (done func()) {
	if _, ok := w.opener.(*fileOpener); !ok {
		return func() {}
	}
	return w.budget.take(value)
}

// checkClasses refuses the file of a mask that has a palette: its colors would be stored, and not its numbers.
func (w *imageWorker) checkClasses(value []byte) error {
	if !w.classes {
		return nil
	}
	c, err := imagefile.ReadConfig(value)
	if err == nil && c.Model == "palette" {
		err = &imagefile.Error{Format: c.Format, Kind: imagefile.ErrUnsupported, Msg: "has a palette, and is in a field that may be a mask: its colors would be stored, not its class numbers; convert it to gray, with Pillow: Image.fromarray(numpy.array(image)); or, if it is a picture: --independent FIELD"}
	}
	return err
}

// check makes sure that an image of that kind becomes a record like all others. One that
// the transforms cannot work with is bad; one that would be of another size is fatal, as it
// is no fault of the image.
func (w *imageWorker) check(name string, in transforms.Info) (bad, fatal error) {
	if in == w.checked {
		return nil, nil
	}
	out, err := w.pipeline.Output(in)
	if err != nil {
		return err, nil
	}
	if out.W != w.out.W || out.H != w.out.H || out.C != w.out.C {
		return nil, &sizeError{w.first, shaped{name, in.W, in.H}, w.out, out}
	}
	w.checked = in
	return nil, nil
}

// fileOpener decodes files of images.
type fileOpener struct {
	decoder *imagefile.Decoder
	rules   rules
}

func (o *fileOpener) open(value []byte) (transforms.Source, error) {
	if err := o.rules.check(value); err != nil {
		return nil, err
	}
	return o.decoder.Open(value)
}

// pixelOpener takes pixels as they are.
type pixelOpener struct{ info transforms.Info }

func (o pixelOpener) open(value []byte) (transforms.Source, error) {
	return transforms.SourceOf(o.info, value)
}

// sizeError says that two images do not fit into one array.
type sizeError struct {
	a, b       shaped
	outA, outB transforms.Info
}

func (e *sizeError) Error() string {
	text := fmt.Sprintf("images of several sizes do not make one array: %s is %dx%d pixels, %s is %dx%d",
		e.a.name, e.a.w, e.a.h, e.b.name, e.b.w, e.b.h)
	if e.outA.W != e.a.w || e.outA.H != e.a.h {
		text += fmt.Sprintf(" (%dx%d and %dx%d after --resize)", e.outA.W, e.outA.H, e.outB.W, e.outB.H)
	}
	return text + "; bring all to one size, for example with --resize 256 --crop 224, or --resize 224x224"
}
