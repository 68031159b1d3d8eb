package mmapds

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ErrClosed is the error of using a Dataset after Close.
var ErrClosed = errors.New("mmapds: the dataset is closed")

// Dataset is an open dataset. Its methods may be called from any goroutine.
type Dataset struct {
	fetcher
	split  string   // that was asked for
	names  *Dataset // of the source names; nil if there are none
	leases leases
	closed atomic.Bool
}

// arrays are the columns of a dataset in its files, which are read through mappings and pread. They do not change
// once they are open, but for what each column notes of its own under atomics.
type arrays struct {
	files   *store.Dataset
	specs   []tensor.Spec
	columns []column // as those of files
	fields  []field  // as those of the schema
	maps    []*mmap.Mapping
	pool    *chunk.Pool // inflates; nil if nothing is packed
	handles handles
}

// Len returns the number of records.
func (d *Dataset) Len() int { return d.len() }

func (d *arrays) len() int { return int(d.files.Records) }

// Schema returns the fields. It must not be changed.
func (d *Dataset) Schema() store.Schema { return d.files.Schema }

// Specs returns names, types and record shapes of the fields. It must not be changed.
func (d *Dataset) Specs() []tensor.Spec { return d.specs }

// Classes returns the names of the values 0, 1, ... of a label field; nil if it has none, or there is no such
// field. It must not be changed.
func (d *Dataset) Classes(field string) []string {
	if i := d.files.Schema.Index(field); i >= 0 {
		return d.files.Schema.Fields[i].Classes
	}
	return nil
}

// Manifest returns the dataset's manifest, or nil for an HDF5 file that another program
// wrote. It must not be changed.
func (d *Dataset) Manifest() *store.Manifest { return d.files.Manifest }

// ID identifies the records: it is the manifest's id and, of a split, its name. It is
// empty for an HDF5 file that another program wrote. A loader's state resumes only with the same ID.
func (d *Dataset) ID() string {
	switch {
	case d.files.Manifest == nil:
		return ""
	case d.split != "":
		return d.files.Manifest.ID + "/" + d.split
	}
	return d.files.Manifest.ID
}

// Files returns where the records are on disk. It must not be changed.
func (d *Dataset) Files() *store.Dataset { return d.files }

// Retain takes a lease: until Release, Close waits and views stay valid. After Close it
// returns ErrClosed, and then there is nothing to release. It allocates nothing.
func (d *Dataset) Retain() error { return d.leases.take() }

// Release gives a lease back. Without one it panics.
func (d *Dataset) Release() { d.leases.drop() }

// Close waits for all leases and unmaps; it must not be called by a goroutine that holds
// one. Views are invalid from then on. Close of a closed Dataset does nothing and returns
// ErrClosed.
func (d *Dataset) Close() error {
	if !d.leases.close() {
		return ErrClosed
	}
	d.closed.Store(true)
	var err error
	if d.names != nil {
		err = d.names.Close()
	}
	return errors.Join(err, d.unmap())
}

// field returns the field of that name.
func (d *Dataset) field(name string) (*field, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	for i := range d.fields {
		if d.fields[i].spec.Name == name {
			return &d.fields[i], nil
		}
	}
	return nil, fmt.Errorf("mmapds: %q has no field %q", d.files.Path, name)
}

// column returns the array of a field whose records have one length.
func (d *Dataset) column(name string) (*column, error) {
	f, err := d.field(name)
	if err != nil {
		return nil, err
	}
	if f.offsets != nil {
		return nil, fmt.Errorf("mmapds: field %q: its records have lengths of their own; use SliceRagged or GatherRagged", name)
	}
	return f.rows, nil
}
