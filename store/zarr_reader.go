package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/tensor"
)

// OpenZarr finds the arrays of a folder of Zarr, of version 2 or 3: those that opts names, or all arrays of numbers,
// which must have one length then. A field has the path of its array; an array that is all there is has the name of
// the folder. Arrays whose chunks are whole records without a codec have Extents, others are Packed.
//
// Errors are those of OpenFlat.
func OpenZarr(path string, opts OpenOptions) (*Dataset, error) {
	d := &Dataset{Path: path, Format: "zarr"}
	g, err := zarr.Open(zarr.Folder(path))
	if err == nil {
		d.zarr = make(map[string]*zarr.Array)
		err = d.addArrays(g, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, Mark(err))
	}
	return d, nil
}

// addArrays makes columns of the arrays that are wanted.
func (d *Dataset) addArrays(g *zarr.Group, opts OpenOptions) error {
	var lengths, known []string
	for _, a := range g.Arrays {
		name := a.Path
		if name == "" {
			name = strings.TrimSuffix(filepath.Base(d.Path), filepath.Ext(d.Path))
		}
		spec, err := a.Spec()
		if err == nil {
			known = append(known, name)
		}
		if opts.Fields != nil && !slices.Contains(opts.Fields, name) || opts.Fields == nil && errors.Is(err, zarr.ErrUnsupported) {
			continue
		}
		if err == nil {
			err = d.addArray(name, spec, a, opts)
		}
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		lengths = append(lengths, fmt.Sprintf("%s has %d", name, a.Records()))
		if len(lengths) > 1 && a.Records() != d.Records {
			return fmt.Errorf("its arrays are of several lengths (%s), so they are not fields of one dataset; name those that belong together (mmapds.WithFields): %w",
				strings.Join(lengths, ", "), ErrUnsupported)
		}
		d.Records = a.Records()
	}
	for _, name := range opts.Fields {
		if d.Schema.Index(name) < 0 {
			return noField(name, known)
		}
	}
	if len(d.Columns) == 0 {
		return fmt.Errorf("it has no array of numbers with an axis of records: %w", ErrUnsupported)
	}
	return nil
}

func (d *Dataset) addArray(name string, spec tensor.Spec, a *zarr.Array, opts OpenOptions) error {
	field := NewField(name, spec.DType, spec.Shape...)
	if err := field.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	extents, err := a.Extents()
	if err != nil {
		return err
	}
	c := Column{Field: len(d.Schema.Fields), Name: name, Spec: field.Spec, Packed: extents == nil}
	for _, e := range extents {
		c.add(Extent{Path: filepath.Join(d.Path, filepath.FromSlash(e.Name)), Offset: e.Offset, Count: e.Count})
	}
	if c.Packed {
		if !opts.Packed {
			return fmt.Errorf("%s: %w", a.How(), ErrUnsupported)
		}
		c.add(Extent{Path: d.Path, Count: a.Records()})
	}
	d.Schema.Fields, d.Columns = append(d.Schema.Fields, field), append(d.Columns, c)
	d.zarr[name] = a
	return nil
}
