package execute

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"reflect"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Guess finds the schema of records without any usable sample. A rank may have no usable sample, and its part
// must fit the parts of the other ranks. It makes up two samples with images of different sizes: if both lead
// to the same schema, the schema does not depend on the sample.
func (j *Job) Guess(name string) error {
	var schemas []store.Schema
	// One is lying and one upright, so that options about sides show.
	for _, size := range []image.Point{{64, 48}, {300, 500}} {
		file, err := pictureOf(size)
		if err != nil {
			return err
		}
		w := NewWorker(j)
		s := &Slot{Sample: source.Sample{Name: name, Data: madeUp{j.Source, file}}}
		if err := w.Probe(s); err != nil {
			return err
		}
		schemas = append(schemas, j.Schema)
	}
	if !reflect.DeepEqual(schemas[0], schemas[1]) {
		return errors.New("no sample of this rank can be used, and the images' size follows from the first " +
			"one; give --resize and --crop, or use fewer ranks")
	}
	return j.Schema.Validate()
}

// pictureOf returns a PNG of a size.
func pictureOf(size image.Point) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, image.NewNRGBA(image.Rectangle{Max: size}))
	return b.Bytes(), err
}

// madeUp is a sample of zeros and of image files.
type madeUp struct {
	fields []source.Field
	file   []byte
}

// Read implements source.Data.
func (m madeUp) Read(to *source.Values) error {
	for i, f := range m.fields {
		switch {
		case f.Content == tensor.Image:
			to.Borrow(i, m.file)
		case f.Ragged:
			to.Make(i, 0)
		default:
			clear(to.Make(i, f.RecordBytes()))
		}
	}
	return nil
}
