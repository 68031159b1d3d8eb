package combine

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Func is a Source whose records a function computes or reads.
//
//	src := combine.Func{Records: 1000, Fields: []tensor.Spec{{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{2}}},
//		Make: func(_ context.Context, record int, field string, dst tensor.View) error { ... }}
//
// Records of variable length need a type that implements [loader.RaggedSource].
type Func struct {
	unheld
	made

	Records int           // how many there are
	Fields  []tensor.Spec // what each has

	// Make writes a field of a record to dst, an array of shape (1, shape of the field...) with
	// undefined contents. Several goroutines call it at once, for one field after the other.
	Make func(ctx context.Context, record int, field string, dst tensor.View) error

	// Name identifies the records, so that Resume refuses a Source with other records; with "" Resume does not compare.
	Name string
}

var _ interface {
	loader.ChunkedSource
	loader.DescribedSource
	loader.Identifier
} = Func{}

// Len returns the number of records.
func (f Func) Len() int { return max(0, f.Records) }

// Specs returns the fields.
func (f Func) Specs() []tensor.Spec { return f.Fields }

// ID returns the name.
func (f Func) ID() string { return f.Name }

// Gather calls the function once per record, in the worker's goroutine.
func (f Func) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	at := fieldOf(f.Fields, field)
	if at < 0 {
		return fmt.Errorf("combine: func: there is no field %q", field)
	}
	spec := f.Fields[at]
	size := spec.RecordBytes()
	for k, i := range indices {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.Make(ctx, i, field, tensor.Of(spec, 1, dst[k*size:(k+1)*size])); err != nil {
			return failed(fmt.Errorf("field %q: %w", field, err), i)
		}
	}
	return nil
}

// Slice returns records [a, b) in new memory.
func (f Func) Slice(field string, a, b int) (tensor.View, error) {
	return copied(f, field, a, b)
}

// Retain returns an error if there is no function: Func is a struct without a constructor, and a
// Loader takes a lease before it reads.
func (f Func) Retain() error {
	if f.Make == nil {
		return errors.New("combine: func: Make is nil")
	}
	return nil
}

// DescribeReads reports that a function makes the records.
func (f Func) DescribeReads(string) (how, why string, resident float64) {
	return "made", "by a function of the program", -1
}
