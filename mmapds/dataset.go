package mmapds

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/penstock/penstock/internal/mmap"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ErrClosed is the error of using a Dataset after Close.
var ErrClosed = errors.New("mmapds: the dataset is closed")

// Options configures OpenWith. The zero value is what Open uses.
type Options struct {
	// Fields opens only these, in this order; nil means all. In an HDF5 file that penstock did
	// not write, a field's name is the dataset's path, such as "train/images".
	Fields []string
}

// Dataset is an open dataset. Its methods may be called from any goroutine.
type Dataset struct {
	files   *store.Dataset
	specs   []tensor.Spec
	columns []column
	maps    []*mmap.Mapping
	leases  leases
	closed  atomic.Bool
}

// Open maps the dataset at path: a flat folder or an HDF5 file. It reads metadata only, so it
// costs a few system calls a file, whatever the number of records.
//
// Errors are those of store.OpenFlat; for an HDF5 file whose data cannot be mapped
// (chunked, compressed, of a foreign type, ...) the error says so, is store.ErrUnsupported,
// and names the command that makes a dataset that can.
func Open(path string) (*Dataset, error) { return OpenWith(path, Options{}) }

// OpenWith is Open with options.
func OpenWith(path string, opts Options) (*Dataset, error) {
	files, err := LocateWith(path, opts)
	if err != nil {
		return nil, err
	}
	d := &Dataset{files: files, specs: files.Schema.Specs()}
	d.leases.init()
	shared := make(map[string]*mmap.Mapping) // an HDF5 file is mapped once for all fields
	for i, spec := range d.specs {
		c, err := d.mapColumn(spec, files.Extents[i], shared)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("mmapds: open %q: field %q: %w", path, spec.Name, err), d.unmap())
		}
		d.columns = append(d.columns, c)
	}
	return d, nil
}

// mapColumn maps the extents of a field: as one piece where the system can do that.
func (d *Dataset) mapColumn(spec tensor.Spec, extents []store.Extent, shared map[string]*mmap.Mapping) (column, error) {
	c := column{spec: spec, size: spec.RecordBytes()}
	if len(extents) > 1 {
		m, err := mmap.Stitch(c.parts(extents))
		if err == nil {
			d.maps = append(d.maps, m)
			c.add(0, m.Bytes())
			return c, nil
		}
		if !errors.Is(err, mmap.ErrUnsupported) {
			return c, err
		}
	}
	for _, e := range extents {
		m := shared[e.Path]
		if m == nil {
			var err error
			if m, err = mmap.File(e.Path); err != nil {
				return c, err
			}
			shared[e.Path] = m
			d.maps = append(d.maps, m)
		}
		n := e.Count * int64(c.size)
		if err := store.Inside(e.Offset, n, int64(len(m.Bytes()))); err != nil {
			return c, fmt.Errorf("%s: %w", e.Path, err)
		}
		c.add(int(e.First), m.Bytes()[e.Offset:e.Offset+n:e.Offset+n])
	}
	return c, nil
}

// Len returns the number of records.
func (d *Dataset) Len() int { return int(d.files.Records) }

// Schema returns the fields. It must not be changed.
func (d *Dataset) Schema() store.Schema { return d.files.Schema }

// Specs returns names, types and record shapes of the fields. It must not be changed.
func (d *Dataset) Specs() []tensor.Spec { return d.specs }

// Manifest returns what the writer recorded, or nil for an HDF5 file of other origin. It
// must not be changed.
func (d *Dataset) Manifest() *store.Manifest { return d.files.Manifest }

// Files returns where the records lie on disk. It must not be changed.
func (d *Dataset) Files() *store.Dataset { return d.files }

// Retain takes a lease: until Release, Close waits and views stay valid. After Close it
// returns ErrClosed, and then there is nothing to release. It allocates nothing.
func (d *Dataset) Retain() error { return d.leases.take() }

// Release gives a lease back. Without one it panics.
func (d *Dataset) Release() { d.leases.drop() }

// Close waits for all leases and unmaps; it must not be called by a goroutine that holds
// one. Views are invalid from then on. A second Close does nothing; in checked builds it
// panics.
func (d *Dataset) Close() error {
	if !d.leases.close() {
		return nil
	}
	d.closed.Store(true)
	return d.unmap()
}

func (d *Dataset) unmap() error {
	var errs []error
	for _, m := range d.maps {
		errs = append(errs, m.Unmap())
	}
	return errors.Join(errs...)
}

// column returns the field of that name.
func (d *Dataset) column(field string) (*column, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	for i := range d.columns {
		if d.columns[i].spec.Name == field {
			return &d.columns[i], nil
		}
	}
	return nil, fmt.Errorf("mmapds: %q has no field %q", d.files.Path, field)
}
