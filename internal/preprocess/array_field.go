package preprocess

import (
	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// arrayField makes numbers of numbers.
type arrayField struct {
	copyField
	pipeline *transforms.ArrayPipeline
}

// newArrayField returns the job for a field and a recipe of transforms.ParseArray. Rows of a
// field of any number of them go through it one by one.
func newArrayField(f source.Field, recipe []byte) (fieldJob, error) {
	p, err := transforms.ParseArray(recipe)
	if err != nil {
		return nil, err
	}
	if _, err := p.Output(f.Spec); err != nil {
		return nil, err
	}
	return arrayField{copyField{f}, p}, nil
}

func (f arrayField) worker() fieldWorker {
	in := f.field.Spec
	in.Ragged = false
	r, err := f.pipeline.Runner(in)
	if err != nil {
		panic("preprocess: a pipeline that was found to fit does not: " + err.Error())
	}
	return &arrayWorker{f, r}
}

// arrayWorker is a worker's part of an arrayField.
type arrayWorker struct {
	arrayField
	runner *transforms.ArrayRunner
}

// output returns the field of the dataset.
func (f arrayField) output() (store.Field, error) {
	out, err := f.pipeline.Output(f.field.Spec)
	if err != nil {
		return store.Field{}, err
	}
	field := store.NewField(f.field.Name, out.DType, out.Shape...)
	field.Ragged, field.Layout, field.Classes = f.field.Ragged, f.field.Layout, f.field.Classes
	return field, nil
}

func (w *arrayWorker) probe(_ string, value []byte) (store.Field, error) {
	if err := w.check(value); err != nil {
		return store.Field{}, err
	}
	return w.output()
}

func (w *arrayWorker) do(_ string, dst, value []byte) (out []byte, bad, fatal error) {
	if err := w.check(value); err != nil {
		return dst, err, nil
	}
	if !w.field.Ragged {
		return dst, w.runner.Do(dst, value), nil
	}
	field, err := w.output()
	if err != nil {
		return dst, nil, err
	}
	from, to := w.field.RecordBytes(), field.RecordBytes()
	rows := len(value) / from
	dst = append(dst[:0], make([]byte, rows*to)...)
	for i := range rows {
		if err := w.runner.Do(dst[i*to:(i+1)*to], value[i*from:(i+1)*from]); err != nil {
			return dst, err, nil
		}
	}
	return dst, nil, nil
}
