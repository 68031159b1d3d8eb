package hdf5

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/tensor"
)

// virtual reads a virtual dataset, whose elements are in other datasets: its origins, in this file or in others.
// https://support.hdfgroup.org/documentation/hdf5/latest/_v_d_s.html
type virtual struct {
	file   *File
	data   *meta.Dataset
	record int64 // elements of a record
	parts  []mapping
	fill   []byte // one element for places that no origin has; nil for zeros

	mu   sync.Mutex
	open map[string]*origin
}

// mapping says which elements of the virtual dataset are which elements of one origin. Both selections have the
// same number of elements, and element i of the first is element i of the second, in C order.
type mapping struct {
	meta.VirtualSource
	from meta.Selection // checked against the origin's shape once the origin is open
	to   selection
}

// origin is a dataset that has elements of a virtual dataset.
type origin struct {
	file *File // nil for a dataset of the same file
	data *meta.Dataset
	array.Records
}

// Limits. A file can name any number of other files, and these can name it in turn: each limit keeps a hostile file
// from using up descriptors or memory.
const (
	mostDepth   = 4        // virtual datasets that refer to virtual datasets
	mostOrigins = 64       // origins that are open at once
	originBytes = 16 << 20 // bytes of an origin that are read at once
)

// virtual returns the reader of a virtual dataset. All numbers in its mappings are checked here, before a record is
// read.
func (f *File) virtual(d *meta.Dataset) (array.Records, error) {
	list, err := d.Mappings()
	if err != nil {
		return nil, err
	}
	if d.Type.Class == meta.Vlen || len(d.Dims) == 0 || d.Null || f.depth >= mostDepth {
		return nil, fmt.Errorf("a virtual dataset of type %v, %d deep: %w", d.Type, f.depth, meta.ErrUnsupported)
	}
	v := &virtual{file: f, data: d, record: 1, open: make(map[string]*origin)}
	for _, n := range d.Dims[1:] {
		if n > 0 && v.record > source.MaxValue/n {
			return nil, fmt.Errorf("records of more than %d elements: %w", source.MaxValue, meta.ErrUnsupported)
		}
		v.record *= n
	}
	// A record is limited before memory is allocated for it.
	if v.record > source.MaxValue/d.Type.Size {
		return nil, fmt.Errorf("records of %d elements: %w", v.record, meta.ErrUnsupported)
	}
	if d.Fill.State == meta.FillUser {
		v.fill = append(v.fill, d.Fill.Value...)
		decode(d.Type, v.fill)
	}
	for _, m := range list {
		to, err := newSelection(m.To, d.Dims)
		if err == nil {
			err = noPattern(m.VirtualSource)
		}
		if err != nil {
			return nil, fmt.Errorf("its part of %s:%s: %w; write it as one dataset: h5repack -l CONTI OLD.h5 NEW.h5", m.File,
				m.Path, err)
		}
		v.parts = append(v.parts, mapping{m.VirtualSource, m.From, to})
	}
	return v, nil
}

// noPattern refuses names with a pattern such as file-%b.h5, which stands for any number of sources. The file does not
// say how many there are, and a missing source would silently become fill values.
func noPattern(v meta.VirtualSource) error {
	for _, name := range []string{v.File, v.Path} {
		for i := range len(name) - 1 {
			if name[i] == '%' && name[i+1] != '%' {
				return fmt.Errorf("a name with a pattern: %w", meta.ErrUnsupported)
			}
		}
	}
	return nil
}

func (v *virtual) Len() int64       { return v.data.Dims[0] }
func (v *virtual) RecordBytes() int { return int(v.record * v.data.Type.Size) }

// Records implements array.Records. Elements that no origin has get the fill value, as in libhdf5. The lock keeps an
// origin open while it is read: another read could close it to stay within mostOrigins.
func (v *virtual) Records(ctx context.Context, dst []byte, a, b int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(dst)
	if len(v.fill) > 0 {
		for n := copy(dst, v.fill); n < len(dst); {
			n += copy(dst[n:], dst[:n])
		}
	}
	for i := range v.parts {
		if err := v.parts[i].read(ctx, v, dst, a, b); err != nil {
			return fmt.Errorf("%s:%s: %w", v.parts[i].File, v.parts[i].Path, err)
		}
	}
	return nil
}

// read copies the elements of records [a, b) that the mapping has. The selections on both sides must have the same
// number of elements.
func (m *mapping) read(ctx context.Context, v *virtual, dst []byte, a, b int64) error {
	first := &m.to.axes[0]
	row := m.to.row()
	from, end := first.below(a)*row, first.below(b)*row
	if from == end {
		return nil
	}
	o, err := v.origin(m.VirtualSource)
	if err != nil {
		return err
	}
	// Only now the shape of the origin is known, which its selection is checked against.
	src, err := newSelection(m.from, o.data.Dims)
	if err != nil {
		return err
	}
	if src.axes[0].count*src.row() != first.count*row {
		return fmt.Errorf("%d elements for %d: %w", src.axes[0].count*src.row(), first.count*row, meta.ErrCorrupt)
	}
	for from < end {
		n, err := m.readRows(ctx, v, o, &src, dst, a, from, end)
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// readRows copies elements from number from of the mapping on, as long as the records of the origin lie side by side,
// and returns how many it has copied. It reads at most originBytes at a time, or one record.
func (m *mapping) readRows(ctx context.Context, v *virtual, o *origin, src *selection, dst []byte, first, from,
	end int64) (int64, error) {
	row := src.row()
	k := from / row
	place, run := src.axes[0].at(k)
	// Consecutive records of the origin are read together, up to the end of the selection.
	run = min(run, max(1, originBytes/int64(max(1, o.RecordBytes()))), (end-1)/row+1-k)
	buf := make([]byte, run*int64(o.RecordBytes()))
	if err := o.Records.Records(ctx, buf, place, place+run); err != nil {
		return 0, err
	}
	size, base := v.data.Type.Size, place*src.axes[0].step
	stop := min(end, (k+run)*row)
	for e := from; e < stop; {
		in, n := src.at(e)
		out, most := m.to.at(e)
		n = min(n, most, stop-e)
		copy(dst[(out-first*v.record)*size:][:n*size], buf[(in-base)*size:])
		e += n
	}
	return stop - from, nil
}

// origin returns an origin, and opens it at its first use. When mostOrigins are open, all open origins are closed
// first.
func (v *virtual) origin(s meta.VirtualSource) (*origin, error) {
	key := s.File + "\x00" + s.Path
	if o := v.open[key]; o != nil {
		return o, nil
	}
	if len(v.open) >= mostOrigins {
		v.closeOrigins()
	}
	o, err := v.openOrigin(s)
	if err != nil {
		return nil, err
	}
	v.open[key] = o
	return o, nil
}

// closeOrigins closes the origins of a virtual dataset, and the origins of virtual datasets among them.
func (v *virtual) closeOrigins() {
	for _, o := range v.open {
		inner, ok := o.Records.(*virtual)
		// A converted origin can be a virtual dataset inside.
		if w, wide := o.Records.(*array.Converted); wide {
			inner, ok = w.Narrow.(*virtual)
		}
		if ok {
			inner.closeOrigins()
		}
		if o.file != nil {
			_ = o.file.Close() // what was read was checked when it was read
		}
	}
	clear(v.open)
}

// Close closes the origins.
func (v *virtual) Close() error {
	v.closeOrigins()
	return nil
}

// openOrigin opens an origin. The file name "." means this file. The depth grows with each step: two files can refer to
// each other, and would be opened until no descriptor is left.
func (v *virtual) openOrigin(s meta.VirtualSource) (*origin, error) {
	if s.File == "." {
		f := v.file
		return v.originIn(&File{ctx: f.ctx, path: f.path, f: f.f, meta: f.meta, pool: f.pool, root: f.root,
			depth: f.depth + 1}, s.Path)
	}
	file, err := v.file.other(s.File)
	if err != nil {
		return nil, err
	}
	o, err := v.originIn(file, s.Path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	o.file = file
	return o, nil
}

// originIn returns a dataset of an open file as an origin. A missing dataset is an error, although libhdf5 reads fill
// values then: a conversion would contain values that nobody has measured.
func (v *virtual) originIn(file *File, path string) (*origin, error) {
	d, err := file.meta.Dataset(path)
	if err != nil {
		return nil, fmt.Errorf("%w; libhdf5 would read fill values: write the dataset there, or leave this one out "+
			"with --fields", err)
	}
	if len(d.Dims) == 0 {
		return nil, fmt.Errorf("a single value as a source: %w", meta.ErrUnsupported)
	}
	r, err := file.records(d)
	if err == nil {
		r, err = widen(r, d.Type, v.data.Type)
	}
	return &origin{data: d, Records: r}, err
}

// widen returns r, whose elements are of type from, as records of type to. It allows only conversions that keep every
// value.
func widen(r array.Records, from, to *meta.Datatype) (array.Records, error) {
	a, b := from.DType(), to.DType()
	switch {
	case from.String() == to.String(), a == b && a != tensor.Invalid:
		return r, nil
	case a != tensor.Bool && b.Holds(a):
		return &array.Converted{Narrow: r, From: a, To: b}, nil
	}
	return nil, fmt.Errorf("it is %v, not %v, which cannot hold all its values: %w; write the virtual dataset "+
		"as one that is converted: h5repack -l CONTI OLD.h5 NEW.h5", from, to, meta.ErrUnsupported)
}

// other opens another HDF5 file that a dataset names. It shares pool and root with f.
func (f *File) other(name string) (*File, error) {
	path := f.place(name)
	file, err := source.OpenUntil(f.ctx, f.root, path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("the file does not exist; put it next to the one that names it")
		}
		return nil, source.WithoutPath(err)
	}
	info, err := file.Stat()
	if err == nil {
		var m *meta.File
		if m, err = meta.Open(file, info.Size()); err == nil {
			return &File{ctx: f.ctx, path: path, f: file, meta: m, pool: f.pool, root: f.root, depth: f.depth + 1}, nil
		}
	}
	return nil, errors.Join(err, file.Close())
}
