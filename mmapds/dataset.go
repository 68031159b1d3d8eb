package mmapds

import (
	"errors"
	"fmt"
	"os"
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
	files   *store.Dataset
	split   string // that was asked for
	pager   Pager  // nil: all is in the files
	specs   []tensor.Spec
	columns []column // as those of files
	fields  []field  // as those of the schema
	maps    []*mmap.Mapping
	pool    *chunk.Pool // inflates; nil if nothing is packed
	handles handles
	leases  leases
	closed  atomic.Bool
}

// Open maps the dataset at path: a flat folder or an HDF5 file. It reads metadata only, so it
// costs a few system calls a file, whatever the number of records (of packed data it reads
// the table of chunks, about a million of them a second).
//
// Errors are those of store.OpenFlat; for an HDF5 file whose data cannot be read (external
// files, filters other than those of package chunk, types without fixed size, ...) the
// error says so and is store.ErrUnsupported.
func Open(path string, opts ...Option) (*Dataset, error) {
	conf, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
	}
	files, err := store.Open(path, store.OpenOptions{Fields: conf.fields, Split: conf.split, Packed: true})
	if err != nil {
		return nil, err
	}
	d := &Dataset{files: files, split: conf.split, pager: conf.pager, specs: files.Schema.Specs()}
	if err := conf.checkFields(d.specs); err != nil {
		return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
	}
	d.leases.init()
	shared := make(map[string]*mmap.Mapping) // an HDF5 file is mapped once for all fields
	d.columns = make([]column, len(files.Columns))
	for i := range files.Columns {
		meta := &files.Columns[i]
		if err := d.openColumn(&d.columns[i], meta, shared); err != nil {
			return nil, errors.Join(fmt.Errorf("mmapds: open %q: field %q: %w", path, d.specs[meta.Field].Name, err), d.unmap())
		}
	}
	for i := range d.columns {
		d.columns[i].checkBy(conf.verify)
		d.columns[i].reading = conf.readMode(d.specs[files.Columns[i].Field].Name)
	}
	for i, spec := range d.specs {
		d.fields = append(d.fields, d.newField(i, spec))
	}
	return d, nil
}

func (d *Dataset) openColumn(c *column, meta *store.Column, shared map[string]*mmap.Mapping) error {
	if meta.Packed {
		return d.openPacked(c, meta, shared)
	}
	return d.mapColumn(c, meta, shared)
}

// mapColumn maps the extents of a column: as few pieces as the system can make of them.
func (d *Dataset) mapColumn(c *column, meta *store.Column, shared map[string]*mmap.Mapping) error {
	*c = newColumn(meta)
	if len(meta.Extents) > 0 {
		c.told = mmap.Tells(meta.Extents[0].Path) // the others' owner is the same
	}
	for rest := meta.Extents; len(rest) > 0; {
		n := stitchable(rest, int64(c.size))
		if err := d.mapGroup(c, rest[:n], shared); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// stitchable returns how many extents, from the first on, can lie side by side in memory:
// all of them but the last are whole pages.
func stitchable(extents []store.Extent, size int64) int {
	page := int64(os.Getpagesize())
	n := 1
	for n < len(extents) {
		last, next := extents[n-1], extents[n]
		if last.Offset%page != 0 || last.Count == 0 || last.Count*size%page != 0 || next.Offset%page != 0 || next.Count == 0 {
			break
		}
		n++
	}
	return n
}

func (d *Dataset) mapGroup(c *column, extents []store.Extent, shared map[string]*mmap.Mapping) error {
	if len(extents) > 1 {
		m, err := mmap.Stitch(c.parts(extents))
		if err == nil {
			d.maps = append(d.maps, m)
			c.add(int(extents[0].First), m.Bytes())
			return nil
		}
		if !errors.Is(err, mmap.ErrUnsupported) {
			return err
		}
	}
	for _, e := range extents {
		if err := d.mapFile(c, e, shared); err != nil {
			return err
		}
	}
	return nil
}

// mapFile maps the file of an extent, once for all that lie in it.
func (d *Dataset) mapFile(c *column, e store.Extent, shared map[string]*mmap.Mapping) error {
	if e.Count == 0 {
		return nil
	}
	m, err := d.mapShared(e.Path, shared)
	if err != nil {
		return err
	}
	n := e.Count * int64(c.size)
	if err := store.Inside(e.Offset, n, int64(len(m.Bytes()))); err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	c.add(int(e.First), m.Bytes()[e.Offset:e.Offset+n:e.Offset+n])
	return nil
}

// mapShared maps a whole file, once.
func (d *Dataset) mapShared(path string, shared map[string]*mmap.Mapping) (*mmap.Mapping, error) {
	if m := shared[path]; m != nil {
		return m, nil
	}
	m, err := mmap.File(path)
	if err != nil {
		return nil, err
	}
	shared[path] = m
	d.maps = append(d.maps, m)
	return m, nil
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

// ID returns what identifies the records: the manifest's id and, of a split, its name. It is
// empty for an HDF5 file of other origin. A loader's state goes on only with the same ID.
func (d *Dataset) ID() string {
	switch {
	case d.files.Manifest == nil:
		return ""
	case d.split != "":
		return d.files.Manifest.ID + "/" + d.split
	}
	return d.files.Manifest.ID
}

// Files returns where the records lie on disk. It must not be changed.
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
	return d.unmap()
}

func (d *Dataset) unmap() error {
	if d.pool != nil {
		d.pool.Close()
	}
	errs := []error{d.handles.close()}
	for _, m := range d.maps {
		errs = append(errs, m.Unmap())
	}
	return errors.Join(errs...)
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
