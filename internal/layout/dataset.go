package layout

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/zarr"
)

// Dataset says where the columns of a dataset on disk are. Every extent is inside its file, so that readers need not
// check offsets again. A Dataset holds no open files, and goroutines may share it.
type Dataset struct {
	Columns []Column               // in order of the schema, values before offsets
	Arrays  map[string]*zarr.Array // of a folder of Zarr, by column
	File    *meta.File             // the metadata of an HDF5 file; nil elsewhere
	Digest  string                 // that identifies a .npy file; "" elsewhere

	// Coordinates are the arrays of numbers of a file of another program that are the coordinates of an axis, by its
	// name. They need not be columns.
	Coordinates map[string]string
}

// Of returns the layout of a *store.Dataset to the packages of this module. Package store, which imports this package,
// sets it: as a method it would show users a type that they cannot name.
var Of func(dataset any) *Dataset

// OpenFlat returns the *store.Dataset of a folder that need not be one of the system's, whose manifest is read already.
// It looks at no other file: what is read there must be compared with the checksums. Package store sets it.
var OpenFlat func(path string, manifest []byte) (dataset any, err error)

// OpenZarr returns the *store.Dataset of files of Zarr that penstock wrote, whose manifest is read already. Its Extents
// have that path, which need not be one of the system's. Package store sets it.
var OpenZarr func(path string, files zarr.Files, manifest []byte) (dataset any, err error)

// OpenHDF5 returns the *store.Dataset of a file whose metadata is read already, as store.OpenHDF5 does. fields names
// the wanted datasets of a file that penstock did not write. Its Extents have that path, which need not be one of the
// system's. Package store sets it.
var OpenHDF5 func(path string, file *meta.File, fields []string, filters Filters) (dataset any, err error)

// Filters says whether data that went through filters is opened.
type Filters int

// A caller undoes filters, or it refuses them.
const (
	Refused Filters = iota
	Undone
)

// Column returns a column of the field at a position in the schema. It panics if the field has no such part.
func (d *Dataset) Column(field int, part Part) *Column {
	columns := d.ColumnsOf(field)
	for i := range columns {
		if columns[i].Part == part {
			return &columns[i]
		}
	}
	panic("layout: no such column")
}

// ColumnsOf returns the columns of the field at a position in the schema.
func (d *Dataset) ColumnsOf(field int) []Column {
	compare := func(c Column, field int) int { return cmp.Compare(c.Field, field) }
	first, _ := slices.BinarySearchFunc(d.Columns, field, compare)
	end, _ := slices.BinarySearchFunc(d.Columns, field+1, compare)
	return d.Columns[first:end]
}

// OpenColumn returns a reader of a column that is Packed. It reads the index of the column's chunks
// from f: the HDF5 file that the dataset was found in, or a copy of it. The chunks are read from f,
// too, or taken from mapped, which is all of the file in memory, where that is not nil. Columns of Zarr
// are read from files of their own: f and mapped may be nil.
//
// Extents say which rows of the reader belong to the column: the rows from Extent.Row on.
func (d *Dataset) OpenColumn(c *Column, f io.ReaderAt, mapped []byte, opts chunk.Options) (*chunk.Reader, error) {
	if a := d.Arrays[c.Name]; a != nil {
		r, err := a.Reader(opts)
		return r, err
	}
	data, err := d.Object(c, f)
	if err != nil {
		return nil, err
	}
	var r *chunk.Reader
	if mapped != nil {
		r, err = chunk.NewMapped(mapped, data, opts)
	} else {
		r, err = chunk.NewReader(f, data, opts)
	}
	if err != nil {
		return nil, err
	}
	if got, want := r.RecordBytes(), c.Spec.RecordBytes(); got != want {
		return nil, fmt.Errorf("%s has rows of %d bytes, not of %d: %w", c.Path(), got, want, ErrCorrupt)
	}
	for _, e := range c.Extents {
		if e.Row+e.Count > r.Len() {
			return nil, fmt.Errorf("%s has %d rows, not %d: %w", c.Path(), r.Len(), e.Row+e.Count, ErrCorrupt)
		}
	}
	return r, nil
}

// Storage says in words for users how a column of Zarr is stored. It returns "" for other columns.
func (d *Dataset) Storage(c *Column) string {
	if a := d.Arrays[c.Name]; a != nil {
		return a.How()
	}
	return ""
}

// Object returns the description of a column's dataset in an HDF5 file. Its elements and index are read from f, which
// reads the file or a copy of it.
func (d *Dataset) Object(c *Column, f io.ReaderAt) (*meta.Dataset, error) {
	if d.File == nil {
		return nil, fmt.Errorf("column %s is not in an HDF5 file: %w", c.Name, ErrUnsupported)
	}
	data, err := d.File.Dataset(c.Path())
	if err != nil {
		return nil, err
	}
	return data.In(f), nil
}
