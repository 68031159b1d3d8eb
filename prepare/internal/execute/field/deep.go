package field

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// deep is the format of all records of a field whose first file does not fit 8-bit gray or RGB: more bits, floats,
// other channels, or a NumPy array.
type deep struct {
	raster transforms.Raster // without pixels
	array  bool              // files are NumPy arrays
	shape  tensor.Shape      // of the array
}

// String describes the format for messages.
func (d *deep) String() string {
	if d.array {
		return fmt.Sprintf("an array of %v %v", d.raster.DType, d.shape)
	}
	return describe(d.raster.C, d.raster.DType)
}

func describe(channels int, dtype tensor.DType) string {
	if channels == 1 {
		return fmt.Sprintf("1 channel of %v", dtype)
	}
	return fmt.Sprintf("%d channels of %v", channels, dtype)
}

// isDeep reports whether the values of a file are stored as they are, and not as 8-bit pixels.
func (o *fileOpener) isDeep(v imageValue) bool {
	if o.rules.Deep != KeepDeep {
		return false
	}
	if isArray(v.bytes) {
		return true
	}
	switch c := v.file.Config; c.Format {
	// Of other formats, the decoders have 8 bits only.
	case imagefile.PNG, imagefile.TIFF, imagefile.PNM:
		return v.err == nil && c.Deep()
	}
	return false
}

func isArray(value []byte) bool { return bytes.HasPrefix(value, []byte(npy.Magic)) }

// samples decodes a file. For a NumPy array, the pixels of the raster are its elements.
func (o *fileOpener) samples(v imageValue) (d deep, err error) {
	value := v.bytes
	if !isArray(value) {
		if err := o.refuses(v); err != nil {
			return d, err
		}
		d.raster, err = o.decoder.SamplesOf(v.file)
		return d, err
	}
	r := bytes.NewReader(value)
	h, err := array.ReadNPY(r)
	if err != nil {
		return d, err
	}
	d.array = true
	n := int64(h.DType.Size())
	for _, length := range h.Shape {
		d.shape = append(d.shape, int(length))
		// The loop ends before the product can overflow.
		if n *= length; n > int64(len(value)) {
			break
		}
	}
	elements := value[h.Offset:]
	if n != int64(len(elements)) || n == 0 {
		return d, fmt.Errorf("is cut short, or empty: the header says %v %v, and there are %d bytes", h.DType, h.Shape,
			len(elements))
	}
	d.raster.DType, d.raster.Pix = h.DType, elements
	if h.BigEndian {
		// The value belongs to the source, and must not be swapped in place.
		d.raster.Pix = slices.Clone(elements)
		array.Swapped(h.DType.Size())(d.raster.Pix)
	}
	return d, nil
}

// probeDeep is Probe for a first file that is deep.
func (w *imageWorker) probeDeep(files *fileOpener, name string, v imageValue) (store.Field, error) {
	d, err := files.samples(v)
	if err == nil {
		err = w.suits(&d)
	}
	if err != nil {
		return store.Field{}, err
	}
	field := w.field(w.out)
	if d.array {
		field = store.NewField(field.Name, d.raster.DType, d.shape...)
	} else {
		out, err := w.pipeline.RasterOutput(d.raster)
		if err != nil {
			return store.Field{}, err
		}
		field = w.deepField(field.Name, d.raster.DType, out)
		if err := w.pipeline.Raster(make([]byte, out.Bytes()), d.raster); err != nil {
			return store.Field{}, err
		}
		w.out, w.first = out, shaped{name, d.raster.W, d.raster.H}
	}
	w.first.name = name
	d.raster.Pix = nil
	w.imageField.deep = &d
	return field, nil
}

// deepField returns the field of the dataset. Mean and deviation that were applied are in units of x/65535.
func (w *imageWorker) deepField(name string, in tensor.DType, out transforms.Info) store.Field {
	f := store.NewField(name, out.DType, out.Shape()...)
	f.Layout = tensor.HWC
	if out.Layout == transforms.CHW {
		f.Layout = tensor.CHW
	}
	if n := applied(w.pipeline); n.Mean != nil {
		f.Normalization = n.Applied(out.C)
		// The scale says in which units mean and deviation are: of x/65535 for 16 bits, and of x itself for other
		// types.
		if in == tensor.Uint16 {
			f.Normalization.Scale = 1<<16 - 1
		} else if in != tensor.Uint8 {
			f.Normalization.Scale = 1
		}
	}
	return f
}

// suits returns an error for flags that are not applied to such files.
func (w *imageWorker) suits(d *deep) error {
	c := w.asked
	if d.array && (c.ChangesPixels() || w.ownRecipe) {
		return errors.New("NumPy arrays are stored as they are; resize, crop and convert them before, or as a source of " +
			"kind npy with --pipeline")
	}
	if d.array {
		return nil
	}
	switch {
	case c.Color != "" && c.Channels() != d.raster.C:
		return fmt.Errorf("has %s, and --color %s converts images of 8 bits only; --sixteen-bit high-byte converts "+
			"16 bits to 8", d, c.Color)
	case c.Normalize.OfImages():
		return fmt.Errorf("has %s, and --normalize dataset is for images of 8 bits; give mean and std of x/%d: "+
			"--dtype float32 --normalize MEAN/STD", d, 1<<16-1)
	case c.Normalize.Mean != nil && c.DType != tensor.Float32 && !w.ownRecipe:
		return fmt.Errorf("has %s, which --normalize changes only with --dtype float32", d)
	case c.DType == tensor.Uint16 && d.raster.DType != tensor.Uint16:
		return fmt.Errorf("has %s, which are not converted to uint16; leave out --dtype", d)
	}
	return nil
}

// doDeep is Do if the file or the first file is deep. A source with both kinds is not one array.
func (w *imageWorker) doDeep(files *fileOpener, isDeep bool, name string, dst []byte, v imageValue) (out []byte,
	err error) {
	if w.deep == nil || !isDeep {
		return dst, ofSample(w.mixed(v))
	}
	d, err := files.samples(v)
	if err != nil {
		return dst, &SampleError{err}
	}
	if d.array != w.deep.array || d.raster.DType != w.deep.raster.DType || d.raster.C != w.deep.raster.C ||
		!slices.Equal(d.shape, w.deep.shape) {
		return dst, &SampleError{fmt.Errorf("has %s, and the first sample, %s, has %s", &d, w.first.name, w.deep)}
	}
	if d.array {
		return append(dst[:0], d.raster.Pix...), nil
	}
	info, err := w.pipeline.RasterOutput(d.raster)
	if err != nil {
		return dst, &SampleError{err}
	}
	if info.W != w.out.W || info.H != w.out.H {
		return dst, &sizeError{w.first, shaped{name, d.raster.W, d.raster.H}, w.out, info}
	}
	dst = slices.Grow(dst[:0], info.Bytes())[:info.Bytes()]
	return dst, ofSample(w.pipeline.Raster(dst, d.raster))
}

// mixed returns the error for a deep file among 8-bit ones, or the other way round.
func (w *imageWorker) mixed(v imageValue) error {
	what := "is a NumPy array"
	if !isArray(v.bytes) {
		if v.err != nil {
			return v.err
		}
		what = "has " + describe(v.file.Config.Channels, v.file.Config.DType)
	}
	first := "8-bit pixels"
	if w.deep != nil {
		first = w.deep.String()
	}
	text := fmt.Sprintf("%s, and the first sample, %s, has %s", what, w.first.name, first)
	if strings.Contains(text, "uint16") {
		text += "; --sixteen-bit high-byte makes 8 bits of 16"
	}
	return errors.New(text)
}
