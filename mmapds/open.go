package mmapds

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/mmap"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// Open maps the dataset at path: a flat folder, an HDF5 file or a folder of Zarr. Open reads
// metadata only, so that it costs a few system calls per file, whatever the number of records; of
// packed data it reads the table of chunks, about a million of them a second. The field of source
// names is left out unless WithFields names it: see [Dataset.SourceName].
//
// Errors are as of store.OpenFlat; for an HDF5 file whose data cannot be read (external files,
// filters that package chunk does not have, types without fixed size, ...) the error says so and is
// store.ErrUnsupported.
func Open(path string, opts ...Option) (*Dataset, error) {
	conf, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
	}
	files, held, err := find(path, conf)
	if err != nil {
		return nil, err
	}
	names := files.SourceNames()
	if conf.fields == nil {
		files = files.WithoutSourceNames()
	}
	d, err := openFiles(path, files, conf)
	if err == nil && names != nil {
		conf = &config{split: conf.split, verify: conf.verify, pager: conf.pager, deleted: conf.deleted}
		if d.names, err = openFiles(path, names, conf); err != nil {
			err = errors.Join(err, d.unmap())
		}
	}
	if err != nil {
		return nil, errors.Join(err, closeFile(held))
	}
	d.held = held
	return d, nil
}

// openAttempts limits how often Open starts again because the generation that it was opening was
// removed.
const openAttempts = 16

// find finds the files of the dataset. For a dataset in a folder it also takes the lock that keeps
// the generation's files until held is closed. A generation that was removed between reading its
// manifest and locking it is looked up again: the newest one is another by then.
func find(path string, conf *config) (files *store.Dataset, held *os.File, err error) {
	opts := store.OpenOptions{Fields: conf.fields, Split: conf.split, Generation: conf.generation, Packed: true}
	for range openAttempts {
		if files, err = store.Open(path, opts); err != nil {
			return nil, nil, err
		}
		if !inGenerations(files) || conf.pager != nil {
			return files, nil, nil
		}
		if held, err = leaseGeneration(files); !errors.Is(err, errPruned) {
			return files, held, err
		}
	}
	return nil, nil, fmt.Errorf("mmapds: open %q: %w", path, err)
}

// closeFile closes f unless it is nil.
func closeFile(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// openFiles maps the files of the dataset at path. If one field fails, everything mapped so far is
// unmapped.
func openFiles(path string, files *store.Dataset, conf *config) (*Dataset, error) {
	d := &Dataset{files: files, split: conf.split, specs: files.Schema.Specs(), pager: conf.pager, checks: conf.verify}
	d.leases.init()
	if !conf.deleted {
		var err error
		if d.live, err = newLive(files); err != nil {
			return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
		}
	}
	d.byName = make(map[string]*field, len(d.specs))
	for _, spec := range d.specs {
		f := &field{spec: spec, records: d.Len(), stored: int(files.Records)}
		d.fields = append(d.fields, f)
		d.byName[spec.Name] = f
	}
	columns := layout.Of(files).Columns
	o := opening{d: d, conf: conf, shared: make(map[string]*mmap.Mapping), unmapped: d.pager == nil && tooMany(columns, conf.mostMapped)}
	readers := make([]*reader, len(columns))
	for i := range columns {
		r, err := o.open(&columns[i])
		if err != nil {
			name := d.specs[columns[i].Field].Name
			return nil, errors.Join(fmt.Errorf("mmapds: open %q: field %q: %w", path, name, err), d.unmap())
		}
		readers[i] = r
	}
	o.finish(readers)
	// A pager's files may lose what was fetched, and other programs write their files in place.
	if d.pager == nil && files.Manifest != nil {
		for _, m := range d.maps {
			m.Publish()
		}
	}
	return d, nil
}

// opening is the state of Open while it opens the columns of a dataset.
type opening struct {
	d      *Dataset
	conf   *config
	shared map[string]*mmap.Mapping // by path: an HDF5 file is mapped once for all fields

	unmapped bool // there are too many files to map them
}

// finish completes the columns and turns them into fields. It decides what depends on the size of
// all columns together, such as whether memory is scarce.
func (o *opening) finish(readers []*reader) {
	size := int64(0)
	for _, r := range readers {
		if r.mapped != nil {
			size += r.mapped.memory.bytes()
		}
	}
	for _, r := range readers {
		var memory *memory
		if r.mapped != nil {
			memory = r.mapped.memory
			r.mapped.preads.exceeds = o.conf.exceeds(size)
			if o.conf.isScarce(size, memory.bytes()) {
				memory.scarce.Store(math.MaxInt64)
			}
		}
		if r.checks = newVerified(r.column, r.files, memory, o.conf.verify); r.checks != nil {
			r.files = r.checks
		}
		r.soon = func(rows []int) []Range { return o.d.companions(r, rows) }
		if r.column.meta.Part != layout.Offsets {
			o.d.fields[r.column.meta.Field].rows = r
		}
	}
	for _, r := range readers {
		if r.column.meta.Part == layout.Offsets {
			o.d.fields[r.column.meta.Field].setOffsets(r)
		}
	}
	if o.d.live != nil {
		for _, r := range readers { // errors name records
			place := r.column.recordOf
			r.column.recordOf = func(row int) int { return min(o.d.live.Before(place(row)), o.d.live.n-1) }
		}
	}
}

// companionBytes is the size up to which a field's values are fetched along with other fields of
// the same records: labels are small, and a batch is not complete without them.
const companionBytes = 64

// companions returns the byte ranges of the small fields of the given records, other than the field
// of r.
func (d *Dataset) companions(r *reader, records []int) (list []Range) {
	for _, f := range d.fields {
		if f.rows == r || f.offsets != nil || f.rows.column.size > companionBytes {
			continue
		}
		list = f.rows.rangesOfRows(list, records)
	}
	return list
}

// open returns the reader of one column: of mapped memory, or, for packed data, of chunks that are
// decoded.
func (o *opening) open(meta *layout.Column) (*reader, error) {
	r := &reader{column: newColumn(meta, o.d.specs[meta.Field].Name), pager: o.d.pager}
	if !meta.Packed {
		return r, o.mapColumn(r)
	}
	if o.d.pool == nil {
		o.d.pool = chunk.NewPool(0)
	}
	if how := layout.Of(o.d.files).Storage(meta); how != "" {
		return r, o.openZarr(r, how)
	}
	return r, o.openHDF5(r)
}

// mapColumn maps the extents of a column, in as few pieces as the system allows: consecutive
// records that span two pieces cannot be one view.
func (o *opening) mapColumn(r *reader) error {
	c := r.column
	if o.unmapped {
		r.files, r.how = &heldRows{c, unmapped{c.meta.Extents[0].Folder}}, "pread"
		r.why = fmt.Sprintf("more than %d files: each is opened for each read", o.conf.mostMapped)
		return nil
	}
	m := &memory{c: c, size: c.size}
	preads := &preader{c: c, handles: &o.d.handles, mode: o.conf.read}
	r.mapped = &mapped{c: c, memory: m, preads: preads}
	r.files = r.mapped
	if r.pager != nil {
		r.held = &heldRows{c, r.pager}
	}
	if len(c.meta.Extents) > 0 {
		m.reported = mmap.ReportsResident(c.meta.Extents[0].Path) // the others' owner is the same
	}
	for rest := c.meta.Extents; len(rest) > 0; {
		n := stitchable(rest, int64(c.size))
		if err := o.mapGroup(m, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// stitchable returns how many extents, from the first on, can lie side by side in memory: all but
// the last must be whole pages.
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

// mapGroup maps extents that can lie side by side in memory as one segment. Where the system cannot
// do that, each extent becomes a segment.
func (o *opening) mapGroup(m *memory, extents []layout.Extent) error {
	if len(extents) > 1 {
		of, err := mmap.Stitch(m.parts(extents))
		if err == nil {
			o.d.maps = append(o.d.maps, of)
			m.add(int(extents[0].First), of, 0, len(of.Bytes()))
			return nil
		}
		if !errors.Is(err, mmap.ErrUnsupported) {
			return err
		}
	}
	for _, e := range extents {
		if err := o.mapFile(m, e); err != nil {
			return err
		}
	}
	return nil
}

// mapFile maps the file of an extent, once for all extents in it. The extent is checked against the
// file's true size before a view exists: a truncated file must be an error here, and not a fault
// later.
func (o *opening) mapFile(m *memory, e layout.Extent) error {
	if e.Count == 0 {
		return nil
	}
	of, err := o.mapShared(e.Folder, e.Path)
	if err != nil {
		return err
	}
	n := e.Count * int64(m.size)
	if err := layout.Inside(e.Offset, n, int64(len(of.Bytes()))); err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	m.add(int(e.First), of, int(e.Offset), int(n))
	return nil
}

// mapShared maps a whole file once for all columns.
func (o *opening) mapShared(folder, path string) (*mmap.Mapping, error) {
	if m := o.shared[path]; m != nil {
		return m, nil
	}
	m, err := mmap.File(folder, path)
	if err != nil {
		return nil, err
	}
	o.shared[path] = m
	o.d.maps = append(o.d.maps, m)
	return m, nil
}

// openHDF5 reads the table of chunks of a packed column. With a pager there are two readers of the
// chunks: one for chunks in the file, and one for chunks that the pager holds.
func (o *opening) openHDF5(r *reader) error {
	files := o.d.files
	m, err := o.mapShared("", files.Path)
	if err != nil {
		return err
	}
	f, err := vfs.OpenRegular(files.Path) // for the table of chunks; the chunks are read from the mapping
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := layout.Of(files).Object(r.column.meta, f)
	if err != nil {
		return err
	}
	r.how, r.why = reads(data)
	p := newPacked(r.column, files.Path, m.Bytes())
	r.setPacked(p)
	p.r, err = layout.Of(files).OpenColumn(r.column.meta, f, p.file, chunk.Options{Pool: o.d.pool, Warm: p.populate})
	if err == nil && r.pager != nil {
		held := newPacked(r.column, files.Path, nil)
		from, opts := pagedFile{r.pager, p.path}, chunk.Options{Pool: o.d.pool, Exact: true}
		held.r, err = layout.Of(files).OpenColumn(r.column.meta, from, nil, opts)
		r.held = held
	}
	return err
}

// setPacked makes the reader decode rows in the files by p.
func (r *reader) setPacked(p *packed) {
	r.packed, r.files = p, p
	r.column.offsetOf = p.offset
}

// openZarr opens a column of Zarr, whose chunks are separate files.
func (o *opening) openZarr(r *reader, how string) (err error) {
	r.how, r.why = "decoded", strings.Replace(how, ", zstd", ", zstd by "+stream.ZstdBackend, 1)
	p := newPacked(r.column, o.d.files.Path, nil)
	r.setPacked(p)
	r.held = p // a mirror fetched these chunks when it was opened: rows that its pager holds are read from the same files
	p.r, err = layout.Of(o.d.files).OpenColumn(r.column.meta, nil, nil, chunk.Options{Pool: o.d.pool})
	return err
}

// reads returns how data that cannot be viewed in place is read, and why it cannot be viewed.
func reads(data *meta.Dataset) (how, why string) {
	how, why = "copied", fmt.Sprintf("it starts at byte %d, which is no multiple of its element size", data.Layout.Offset)
	if err := data.Mappable(); err != nil {
		why = err.Error()
	}
	if len(data.Filters) > 0 {
		how = "inflated"
	}
	for _, f := range data.Filters {
		switch f.ID {
		case meta.FilterDeflate:
			why += ", gzip by " + chunk.Backend
		case meta.FilterZstd:
			why += ", zstd by " + stream.ZstdBackend
		}
	}
	return how, why
}
