package mmapds

import (
	"errors"
	"fmt"
	"os"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/store"
)

// Open maps the dataset at path: a flat folder, an HDF5 file or a folder of Zarr. It reads metadata only, so it
// costs a few system calls a file, whatever the number of records (of packed data it reads
// the table of chunks, about a million of them a second). The field of source names is left out
// unless WithFields names it: see [Dataset.SourceName].
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
	names := files.SourceNames()
	if conf.fields == nil {
		files = files.WithoutSourceNames()
	}
	d, err := openFiles(path, files, conf)
	if err == nil && names != nil {
		if d.names, err = openFiles(path, names, &config{split: conf.split, verify: conf.verify, pager: conf.pager}); err != nil {
			err = errors.Join(err, d.unmap())
		}
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// openFiles maps files, the dataset at path.
func openFiles(path string, files *store.Dataset, conf *config) (*Dataset, error) {
	d := &Dataset{split: conf.split}
	d.files, d.pager, d.specs = files, conf.pager, files.Schema.Specs()
	if err := conf.checkFields(d.specs); err != nil {
		return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
	}
	d.leases.init()
	m := mapper{&d.fetcher, make(map[string]*mmap.Mapping)}
	columns := layout.Of(files).Columns
	d.columns = make([]column, len(columns))
	for i := range columns {
		meta := &columns[i]
		if err := m.openColumn(&d.columns[i], meta); err != nil {
			return nil, errors.Join(fmt.Errorf("mmapds: open %q: field %q: %w", path, d.specs[meta.Field].Name, err), d.unmap())
		}
	}
	size := int64(0)
	for i := range d.columns {
		for _, s := range d.columns[i].segments {
			size += int64(len(s.data))
		}
	}
	exceeds := conf.exceeds(size)
	for i := range d.columns {
		d.columns[i].exceeds = exceeds
		d.columns[i].checkBy(conf.verify)
		d.columns[i].reading = conf.readMode(d.specs[columns[i].Field].Name)
	}
	for i, spec := range d.specs {
		d.fields = append(d.fields, d.newField(i, spec))
	}
	return d, nil
}

// mapper opens the columns of a dataset.
type mapper struct {
	*fetcher
	shared map[string]*mmap.Mapping // by path: an HDF5 file is mapped once for all fields
}

func (d mapper) openColumn(c *column, meta *layout.Column) error {
	if meta.Packed {
		return d.openPacked(c, meta)
	}
	return d.mapColumn(c, meta)
}

// mapColumn maps the extents of a column: as few pieces as the system can make of them.
func (d mapper) mapColumn(c *column, meta *layout.Column) error {
	*c = newColumn(meta)
	if len(meta.Extents) > 0 {
		c.reported = mmap.ReportsResident(meta.Extents[0].Path) // the others' owner is the same
	}
	for rest := meta.Extents; len(rest) > 0; {
		n := stitchable(rest, int64(c.size))
		if err := d.mapGroup(c, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// stitchable returns how many extents, from the first on, can be side by side in memory:
// all of them but the last are whole pages.
func stitchable(extents []layout.Extent, size int64) int {
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

func (d mapper) mapGroup(c *column, extents []layout.Extent) error {
	if len(extents) > 1 {
		m, err := mmap.Stitch(c.parts(extents))
		if err == nil {
			d.maps = append(d.maps, m)
			c.add(int(extents[0].First), m, 0, len(m.Bytes()))
			return nil
		}
		if !errors.Is(err, mmap.ErrUnsupported) {
			return err
		}
	}
	for _, e := range extents {
		if err := d.mapFile(c, e); err != nil {
			return err
		}
	}
	return nil
}

// mapFile maps the file of an extent, once for all that are in it.
func (d mapper) mapFile(c *column, e layout.Extent) error {
	if e.Count == 0 {
		return nil
	}
	m, err := d.mapShared(e.Path)
	if err != nil {
		return err
	}
	n := e.Count * int64(c.size)
	if err := layout.Inside(e.Offset, n, int64(len(m.Bytes()))); err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	c.add(int(e.First), m, int(e.Offset), int(n))
	return nil
}

// mapShared maps a whole file, once.
func (d mapper) mapShared(path string) (*mmap.Mapping, error) {
	if m := d.shared[path]; m != nil {
		return m, nil
	}
	m, err := mmap.File(path)
	if err != nil {
		return nil, err
	}
	d.shared[path] = m
	d.maps = append(d.maps, m)
	return m, nil
}

func (d *arrays) unmap() error {
	if d.pool != nil {
		d.pool.Close()
	}
	errs := []error{d.handles.close()}
	for _, m := range d.maps {
		errs = append(errs, m.Unmap())
	}
	return errors.Join(errs...)
}
