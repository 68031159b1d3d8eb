package combine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Array is one field of records in memory.
type Array struct {
	Name   string
	Values tensor.View // one record after the other; tensor.From builds it from a slice

	// Offsets is set if records have variable length: record i is rows [Offsets[i], Offsets[i+1])
	// of Values. It begins with 0 and ends with the number of rows.
	Offsets []int64

	Content, Layout, Image, Instances string // as in tensor.Spec; may be empty

	Classes []string // the names of the values 0, 1, ... of a label; may be nil
}

// spec returns the field that the Array describes.
func (a *Array) spec() tensor.Spec {
	return tensor.Spec{
		Name: a.Name, DType: a.Values.DType(), Shape: a.Values.Shape()[1:], Ragged: a.Offsets != nil,
		Content: a.Content, Layout: a.Layout, Image: a.Image, Instances: a.Instances,
	}
}

// records returns the number of records, or an error if the Array is not a field.
func (a *Array) records() (int, error) {
	if a.Values.Rank() == 0 {
		return 0, fmt.Errorf("field %q has no Values", a.Name)
	}
	if err := a.spec().Validate(); err != nil || a.Offsets == nil {
		return a.Values.Len(), err
	}
	n := len(a.Offsets) - 1
	if n < 0 || a.Offsets[0] != 0 || a.Offsets[n] != int64(a.Values.Len()) || !slices.IsSorted(a.Offsets) {
		return 0, fmt.Errorf("field %q: Offsets must go up from 0 to the number of rows, %d", a.Name, a.Values.Len())
	}
	return n, nil
}

// Arrays is a Source of slices in memory, one per field. Batches in record order are views of the
// slices; other batches are copied. The slices belong to the caller, and must not change while a
// Loader reads them.
type Arrays struct {
	unheld
	n      int
	fields []Array
	specs  []tensor.Spec
}

// NewArrays returns the Source of fields that all have the same number of records.
func NewArrays(fields ...Array) (*Arrays, error) {
	if len(fields) == 0 {
		return nil, errors.New("combine: arrays: no fields")
	}
	a := &Arrays{fields: slices.Clone(fields)}
	for i := range fields {
		n, err := fields[i].records()
		if err != nil {
			return nil, fmt.Errorf("combine: arrays: %w", err)
		}
		if i > 0 && n != a.n {
			return nil, fmt.Errorf("combine: arrays: field %q has %d records, and field %q has %d", fields[i].Name, n,
				fields[0].Name, a.n)
		}
		if slices.ContainsFunc(a.specs, func(s tensor.Spec) bool { return s.Name == fields[i].Name }) {
			return nil, fmt.Errorf("combine: arrays: two fields have the name %q", fields[i].Name)
		}
		a.n, a.specs = n, append(a.specs, fields[i].spec())
	}
	return a, nil
}

var _ interface {
	loader.RaggedSource
	loader.MappedSource
	loader.DescribedSource
	loader.ClassedSource
} = (*Arrays)(nil)

// Len returns the number of records.
func (a *Arrays) Len() int { return a.n }

// Specs returns the fields, in the order in which they were given.
func (a *Arrays) Specs() []tensor.Spec { return a.specs }

// Classes returns the names of a label field's values.
func (a *Arrays) Classes(field string) []string {
	if i := fieldOf(a.specs, field); i >= 0 {
		return a.fields[i].Classes
	}
	return nil
}

// field returns the named field, or an error if the field or some of the records do not exist.
func (a *Arrays) field(name string, first, end int) (*Array, error) {
	i := fieldOf(a.specs, name)
	if i < 0 {
		return nil, fmt.Errorf("combine: arrays: there is no field %q", name)
	}
	if first < 0 || end < first || end > a.n {
		return nil, fmt.Errorf("combine: arrays: field %q: records [%d, %d) of %d do not exist", name, first, end, a.n)
	}
	return &a.fields[i], nil
}

// Slice returns records [first, end) as memory of the caller's slice.
func (a *Arrays) Slice(field string, first, end int) (tensor.View, error) {
	f, err := a.field(field, first, end)
	if err != nil {
		return tensor.View{}, err
	}
	return f.Values.Slice(first, end), nil
}

// SliceRagged returns the rows of records [first, end) as memory of the caller's slice.
func (a *Arrays) SliceRagged(field string, first, end int, offsets []int64) (tensor.View, error) {
	f, err := a.field(field, first, end)
	if err != nil {
		return tensor.View{}, err
	}
	from := f.Offsets[first]
	for i, at := range f.Offsets[first : end+1] {
		offsets[i] = at - from
	}
	return f.Values.Slice(int(from), int(f.Offsets[end])), nil
}

func (a *Arrays) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	f, err := a.checked(ctx, field, indices)
	if err != nil {
		return err
	}
	gatherRows(dst, f.Values.Bytes(), f.spec().RecordBytes(), indices)
	return nil
}

// checked returns a field after a check that all records of a list exist. gatherRows has no checks
// of its own.
func (a *Arrays) checked(ctx context.Context, field string, indices []int) (*Array, error) {
	f, err := a.field(field, 0, 0)
	if err == nil {
		err = ctx.Err()
	}
	for _, i := range indices {
		if uint(i) >= uint(a.n) {
			_, err = a.field(field, i, i+1)
		}
	}
	return f, err
}

// Bytes that are prefetched from memory, in all and of one row at most.
const (
	prefetchAhead = 12 << 10
	prefetchRow   = 1 << 10
)

// gatherRows copies rows of src. It prefetches later rows into the CPU's cache, as rows of a
// shuffled batch are far apart.
func gatherRows(dst, src []byte, size int, rows []int) {
	distance, part := max(1, prefetchAhead/max(1, size)), min(size, prefetchRow)
	for _, i := range rows[:min(len(rows), distance)] {
		kernel.Prefetch(src[i*size:][:part])
	}
	for k, i := range rows {
		if k+distance < len(rows) {
			kernel.Prefetch(src[rows[k+distance]*size:][:part])
		}
		kernel.Copy(dst[k*size:(k+1)*size], src[i*size:(i+1)*size])
	}
}

// Lengths sets the offsets that GatherRagged will set, and copies no rows.
func (a *Arrays) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	f, err := a.checked(ctx, field, indices)
	if err != nil {
		return err
	}
	offsets[0] = 0
	for k, i := range indices {
		offsets[k+1] = offsets[k] + f.Offsets[i+1] - f.Offsets[i]
	}
	return nil
}

func (a *Arrays) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) (
	[]byte, error) {
	f, err := a.checked(ctx, field, indices)
	if err != nil {
		return dst, err
	}
	if err := a.Lengths(ctx, field, indices, offsets); err != nil {
		return dst, err
	}
	size, values := int64(f.spec().RecordBytes()), f.Values.Bytes()
	need := int(offsets[len(indices)] * size)
	dst = slices.Grow(dst[:0], need)[:need]
	for k, i := range indices {
		copy(dst[offsets[k]*size:offsets[k+1]*size], values[f.Offsets[i]*size:f.Offsets[i+1]*size])
	}
	return dst, nil
}

// Warm does nothing: slices are in memory.
func (a *Arrays) Warm(string, int, int) error { return nil }

// IsWarm returns true: slices are in memory.
func (a *Arrays) IsWarm(string, int, int) bool { return true }

// DescribeReads reports that records are copied from memory.
func (a *Arrays) DescribeReads(string) (how, why string, resident float64) {
	return "copied", "they are slices in memory", 1
}
