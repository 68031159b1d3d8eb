package hdf5

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/cells"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/tensor"
)

// Hierarchy returns the groups and arrays of a file of which only the metadata is read.
func Hierarchy(f *meta.File) cells.Hierarchy { return hierarchy{&File{meta: f}} }

// Cells returns the cells of a single-cell file (AnnData) as a unit; nil for any other file.
func (f *File) Cells() unit.Unit { return cells.Of(hierarchy{f}) }

// hierarchy implements cells.Hierarchy.
type hierarchy struct{ f *File }

func (h hierarchy) Path() string             { return h.f.path }
func (h hierarchy) Format() string           { return "h5ad" }
func (h hierarchy) Context() context.Context { return h.f.ctx }

// Kind implements cells.Hierarchy. A link without a target counts as missing.
func (h hierarchy) Kind(path string) cells.Kind {
	l, err := h.f.meta.Lookup(path)
	switch {
	case err != nil:
		return cells.Missing
	case l.Group != nil:
		return cells.Group
	case l.Dataset == nil:
		return cells.Missing
	case l.Dataset.Null:
		return cells.Empty
	}
	return cells.Array
}

func (h hierarchy) List(path string) (names []string) {
	l, err := h.f.meta.Lookup(path)
	if err != nil || l.Group == nil {
		return nil
	}
	for i := range l.Group.Links {
		if l := &l.Group.Links[i]; l.Group != nil || l.Dataset != nil {
			names = append(names, l.Name)
		}
	}
	return names
}

func (h hierarchy) Attribute(path, name string) (cells.Value, bool) {
	l, err := h.f.meta.Lookup(path)
	if err != nil {
		return nil, false
	}
	attrs := l.Attrs
	if l.Group != nil {
		attrs = l.Group.Attrs
	} else if l.Dataset != nil {
		attrs = l.Dataset.Attrs
	}
	a, ok := attrs.Get(name)
	if !ok {
		return nil, false
	}
	return a.Value, true
}

func (h hierarchy) UnitAttribute(name string) (unit.Attribute, bool) {
	return (&unitOf{h.f, &meta.Link{Group: h.f.meta.Root}}).Attribute(name)
}

// Field implements cells.Hierarchy. A compound is refused, as it makes more than one field.
func (h hierarchy) Field(path string) (field source.Field, rows int64, err error) {
	d, err := h.f.meta.Dataset(path)
	if err != nil {
		return field, 0, err
	}
	p, err := only(parts(d))
	return p.field, d.Records(), err
}

// only returns the field of a dataset that makes a single field. Compounds make several fields, which is an error.
func only[T any](list []T, err error) (one T, _ error) {
	switch {
	case err != nil:
		return one, err
	case len(list) != 1:
		return one, fmt.Errorf("a compound of %d members: %w", len(list), meta.ErrUnsupported)
	}
	return list[0], nil
}

// Column implements cells.Hierarchy.
func (h hierarchy) Column(path string) (c array.Column, err error) {
	d, err := h.f.meta.Dataset(path)
	if err != nil {
		return c, err
	}
	return only(h.f.columns(d, asItIs))
}

// Numbers implements cells.Hierarchy. It accepts only datasets of numbers with one axis, such as the parts of a sparse
// matrix.
func (h hierarchy) Numbers(path string) (array.Records, tensor.DType, error) {
	d, err := h.f.meta.Dataset(path)
	if err != nil {
		return nil, tensor.Invalid, err
	}
	spec, err := d.Spec()
	if err == nil && len(d.Dims) != 1 {
		err = fmt.Errorf("%s has %d axes, and not one: %w", path, len(d.Dims), meta.ErrUnsupported)
	}
	if err != nil {
		return nil, tensor.Invalid, err
	}
	r, err := h.f.records(d)
	return r, spec.DType, err
}

// Check implements cells.Hierarchy. It refuses a dataset with more values than a file of this size can hold even if it
// is compressed a thousandfold: readers allocate memory for all values, and the number comes from the file. Values in
// other files are not checked.
func (h hierarchy) Check(path string) error {
	d, err := h.f.meta.Dataset(path)
	if err == nil && len(d.Dims) != 1 {
		err = fmt.Errorf("%s is not one axis of values: %w", path, meta.ErrUnsupported)
	}
	// The size of this file says nothing about values in other files.
	if err != nil || d.Layout.Kind == meta.Virtual || len(d.External) > 0 {
		return err
	}
	if size := h.f.meta.Size; d.Records() > (64<<20+1024*size)/max(1, d.Type.Size) {
		return fmt.Errorf("%s has %d values in a file of %d bytes: %w", path, d.Records(), size, meta.ErrCorrupt)
	}
	return nil
}
