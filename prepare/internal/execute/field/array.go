package field

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// arrayField converts an array of numbers to another array.
type arrayField struct {
	copyField
	pipeline *transforms.ArrayPipeline
}

// newArrayField returns the job for a field with a recipe of transforms.ParseArray. Random transforms are an error:
// the records would be the same in each epoch.
func newArrayField(f source.Field, recipe []byte) (Job, error) {
	p, err := transforms.ParseArray(recipe)
	if err != nil {
		return nil, err
	}
	if _, err := p.Output(f.Spec); err != nil {
		return nil, err
	}
	if p.Random() {
		return nil, errors.New("a transform draws, so that records would be the same in every epoch; apply it in the loader")
	}
	return arrayField{copyField{f}, p}, nil
}

func (f arrayField) NewWorker() Worker {
	r, err := f.pipeline.Runner(f.field.Spec)
	if err != nil {
		// newArrayField has checked the same pipeline with the same spec.
		panic("preprocess: a pipeline that was found to fit does not: " + err.Error())
	}
	return &arrayWorker{f, r}
}

// arrayWorker is the Worker of an arrayField.
type arrayWorker struct {
	arrayField
	runner *transforms.ArrayRunner
}

// output returns the field of the dataset. Names of classes are kept only for class numbers, and a layout only if
// the shape is unchanged.
func (f arrayField) output() (store.Field, error) {
	out, err := f.pipeline.Output(f.field.Spec)
	if err != nil {
		return store.Field{}, err
	}
	field := store.NewField(f.field.Name, out.DType, out.Shape...)
	field.Ragged, field.Width, field.Features = out.Ragged, out.Width, out.Features
	if out.Content == tensor.Sparse {
		field.Content = out.Content
	}
	if out.Ragged == f.field.Ragged && slices.Equal(out.Shape, f.field.Shape) {
		field.Layout = f.field.Layout
	}
	field.Dims = out.Dims
	if out.DType == tensor.Int64 && len(out.Shape) == 0 {
		field.Classes = f.field.Classes
	}
	return field, nil
}

// extends returns an error if the field cannot be appended to: classes may have other numbers in another run, and
// they can be matched only if their names were kept.
func (f arrayField) extends() error {
	out, err := f.output()
	if err == nil && f.field.Classes != nil && out.Classes == nil {
		err = errors.New("transforms make class numbers something else, so that --append cannot match the classes by name; " +
			"build the whole dataset again")
	}
	return err
}

func (w *arrayWorker) Probe(_ string, value []byte) (store.Field, error) {
	if err := w.check(value); err != nil {
		return store.Field{}, err
	}
	return w.output()
}

func (w *arrayWorker) Do(_ string, dst, value []byte) (out []byte, err error) {
	if err := w.check(value); err != nil {
		return dst, &SampleError{err}
	}
	if dst, err = w.runner.Append(dst[:0], value); err != nil {
		return dst, &SampleError{fmt.Errorf("%s: %w", w.field.Name, source.ValueError("%w", err))}
	}
	return dst, nil
}
