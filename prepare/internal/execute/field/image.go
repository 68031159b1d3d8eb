package field

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// imageField converts image files or pixels to pixels of one size.
type imageField struct {
	pipeline *transforms.Pipeline
	field    func(out transforms.Info) store.Field
	opener   func() opener
	out      transforms.Info // the output for every image, from Probe
	first    shaped          // the sample of Probe, for messages

	asked     Options // for files: the options without the defaults of 8-bit images
	ownRecipe bool    // the field has transforms of its own
	budget    *decodeBudget
	classes   bool  // values may be class numbers, so a file with a palette is refused
	deep      *deep // set by Probe if the first file does not fit 8-bit gray or RGB: all others must be like it
}

// imageValue is the value of an image: pixels, or a file whose header is parsed once.
type imageValue struct {
	bytes []byte
	file  imagefile.File // the zero value for pixels
	err   error          // why the file cannot be opened, by its header
}

// opener turns values into pixels. It serves one goroutine.
type opener interface {
	parse(value []byte) imageValue
	open(v imageValue) (transforms.Source, error)
}

// shaped is a sample with the size of its image, for messages.
type shaped struct {
	name string
	w, h int
}

func (f *imageField) NewWorker() Worker {
	return &imageWorker{imageField: f, opener: f.opener(), runner: f.pipeline.Runner()}
}

// imageWorker is the Worker of an imageField.
type imageWorker struct {
	*imageField
	opener  opener
	runner  *transforms.Runner
	checked transforms.Info // last input whose output has the size of all others
}

// Probe makes the record of the first sample, and returns its field. It decodes all pixels, as a header does not
// prove that the file is complete.
func (w *imageWorker) Probe(name string, value []byte) (store.Field, error) {
	v := w.opener.parse(value)
	if err := w.checkClasses(v); err != nil {
		return store.Field{}, err
	}
	// Released when the record is made: the pixels are then in dst.
	defer w.budget.take(v)()
	if files, ok := w.opener.(*fileOpener); ok && files.isDeep(v) {
		return w.probeDeep(files, name, v)
	}
	if w.asked.DType == tensor.Uint16 {
		return store.Field{}, errors.New("has 8 bits a sample; --dtype uint16 is for images of 16")
	}
	src, err := w.opener.open(v)
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

// Do decodes and transforms an image. It takes the memory of the pixels from a budget that all workers share: a few
// images of 100 megapixels at once would exhaust the memory. Faults of the file are a SampleError. An output of
// another size than the first output ends the run, as an array has one size, and the fault is in the options.
func (w *imageWorker) Do(name string, dst, value []byte) (out []byte, err error) {
	v := w.opener.parse(value)
	if err := w.checkClasses(v); err != nil {
		return dst, &SampleError{err}
	}
	defer w.budget.take(v)()
	if files, ok := w.opener.(*fileOpener); ok {
		if isDeep := files.isDeep(v); isDeep || w.deep != nil {
			return w.doDeep(files, isDeep, name, dst, v)
		}
	}
	src, err := w.opener.open(v)
	if err != nil {
		return dst, &SampleError{err}
	}
	if err := w.check(name, transforms.InfoOf(src)); err != nil {
		return dst, err
	}
	return dst, ofSample(w.runner.Do(dst, src))
}

// checkClasses returns an error for a file with a palette in a field that may be a mask: the colors would be
// stored, and not the class numbers.
func (w *imageWorker) checkClasses(v imageValue) error {
	if !w.classes {
		return nil
	}
	c, err := v.file.Config, v.err
	if err == nil && c.Model == "palette" {
		err = &imagefile.Error{Format: c.Format, Kind: imagefile.ErrUnsupported, Msg: "has a palette, and is in a field " +
			"that may be a mask: its colors would be stored, not its class numbers; convert it to gray, with Pillow: " +
			"Image.fromarray(numpy.array(image)); or, if it is a picture: --independent FIELD"}
	}
	return err
}

// check returns an error if the output for an image differs from the output for the others. If the transforms
// cannot work on the image, it is a SampleError; if only the size differs, it is not, as that is no fault of the
// image.
func (w *imageWorker) check(name string, in transforms.Info) error {
	// Most images of a dataset have few sizes, and Output goes through all transforms.
	if in == w.checked {
		return nil
	}
	out, err := w.pipeline.Output(in)
	if err != nil {
		return &SampleError{err}
	}
	if out.W != w.out.W || out.H != w.out.H || out.C != w.out.C {
		return &sizeError{w.first, shaped{name, in.W, in.H}, w.out, out}
	}
	w.checked = in
	return nil
}

// fileOpener decodes image files.
type fileOpener struct {
	decoder *imagefile.Decoder
	rules   rules
}

func (o *fileOpener) parse(value []byte) imageValue {
	file, err := imagefile.Parse(value)
	return imageValue{value, file, err}
}

func (o *fileOpener) open(v imageValue) (transforms.Source, error) {
	if err := o.refuses(v); err != nil {
		return nil, err
	}
	return o.decoder.OpenFile(v.file)
}

// refuses returns why a file must not be opened, nil if it may.
func (o *fileOpener) refuses(v imageValue) error {
	if v.err != nil {
		return v.err
	}
	return o.rules.check(v.file.Config)
}

// pixelOpener makes a source of pixels that are stored as they are, without decoding.
type pixelOpener struct{ info transforms.Info }

func (o pixelOpener) parse(value []byte) imageValue { return imageValue{bytes: value} }

func (o pixelOpener) open(v imageValue) (transforms.Source, error) {
	return transforms.SourceOf(o.info, v.bytes)
}

// sizeError is the error of two images that do not fit in one array.
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
