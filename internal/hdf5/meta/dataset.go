package meta

import (
	"cmp"
	"io"
	"path"

	"github.com/penstock/penstock/tensor"
)

// Dataset describes one dataset, as reached by one path. It is immutable.
type Dataset struct {
	Path string
	Dataspace
	Type       *Datatype
	Layout     Layout
	Filters    []Filter
	Fill       Fill
	External   []ExternalFile // the data is in these files
	Attrs      Attrs
	HeaderAt   int64 // offset of the object header
	HeaderSize int64 // bytes of it, continuation blocks included
	Version    int   // of the object header, 1 or 2
	Err        error // wraps ErrUnsupported: what of the description could not be read; nil if all was

	file *File
}

// In returns the dataset with its elements and its index in r, which reads the same file, or a copy
// of it: Value, Chunks and Sources read through r. So a File can be kept when what it was opened
// through is closed.
func (d *Dataset) In(r io.ReaderAt) *Dataset {
	file, data := *d.file, *d
	file.r, data.file = r, &file
	return &data
}

// ExternalFile is a part of a dataset that is in another file.
type ExternalFile struct {
	Name   string
	Offset int64 // in that file
	Size   int64 // -1 if without limit
}

// dataset parses the messages of a dataset's header.
func (p *parser) dataset(h *header) (*Dataset, error) {
	d := &Dataset{HeaderAt: p.abs(h.addr), HeaderSize: h.size, Version: h.version, Layout: Layout{Offset: -1, IndexAt: -1}}
	d.Err = h.unknown(p.source)
	seen := false
	for _, m := range h.msgs {
		err := p.datasetMessage(d, m)
		if d.Err == nil {
			d.Err = err
		}
		if onlyFatal(err) != nil {
			return nil, err
		}
		seen = seen || m.typ == msgLayout
	}
	if d.Err != nil {
		return d, nil
	}
	if !seen {
		return nil, p.errorAt(ErrCorrupt, h.addr, "object header", "dataset without layout")
	}
	return d, p.settle(d, h.addr)
}

func (p *parser) datasetMessage(d *Dataset, m message) (err error) {
	switch m.typ {
	case msgDatatype:
		d.Type, err = p.datatype(m, "datatype message")
		return err
	case msgDataspace, msgLayout, msgFilters, msgExternal, msgFill, msgFillOld:
		if m, err = p.resolve(m, "shared message"); err != nil {
			return err
		}
		c := p.cursor(m, "")
		p.plainMessage(d, m.typ, c)
		return c.err
	}
	return nil
}

func (p *parser) plainMessage(d *Dataset, typ uint16, c *cursor) {
	switch typ {
	case msgDataspace:
		c.what = "dataspace message"
		d.Dataspace = parseDataspace(c)
	case msgLayout:
		c.what = "layout message"
		d.Layout = parseLayout(c)
	case msgFilters:
		c.what = "filter pipeline message"
		d.Filters = parseFilters(c)
	case msgExternal:
		c.what = "external files message"
		d.External = p.externalFiles(c)
	case msgFill:
		c.what = "fill value message"
		d.Fill = parseFill(c)
	case msgFillOld:
		if d.Fill.State == FillDefault {
			c.what = "fill value message"
			d.Fill = parseFillOld(c)
		}
	}
}

// externalFiles parses the list of files, whose names are in a local heap.
func (p *parser) externalFiles(c *cursor) (list []ExternalFile) {
	c.version(1, 1)
	c.skip(3 + 2)
	n := int(c.u16())
	heapAddr := c.addr()
	if c.err != nil {
		return nil
	}
	heap, err := p.readLocalHeap(heapAddr)
	for i := 0; i < n && err == nil && c.err == nil; i++ {
		var f ExternalFile
		name := c.length()
		f.Offset, f.Size = int64(c.length()), int64(c.length())
		if c.err == nil {
			f.Name, err = heap.name(name)
		}
		list = append(list, f)
	}
	c.err = cmp.Or(c.err, err)
	return list
}

// settle checks that shape, type, layout and fill value fit each other, and computes the
// size where the layout message does not store it.
func (p *parser) settle(d *Dataset, addr uint64) error {
	l := &d.Layout
	size, ok := valueSize(d.Type, d.Dataspace)
	bad := func(format string, args ...any) error {
		return p.errorAt(ErrCorrupt, addr, "object header", format, args...)
	}
	switch {
	case l.Kind == Chunked && len(l.ChunkDims) != len(d.Dims):
		return bad("%d chunk dimensions for %d axes", len(l.ChunkDims), len(d.Dims))
	case l.Kind == Chunked && l.index.elemSize != d.Type.Size:
		return bad("chunks of elements of %d bytes, datatype has %d", l.index.elemSize, d.Type.Size)
	case d.Fill.State == FillUser && int64(len(d.Fill.Value)) != d.Type.Size:
		return bad("fill value of %d bytes, datatype has %d", len(d.Fill.Value), d.Type.Size)
	case l.Kind == Contiguous && !ok:
		return bad("shape %v of elements of %d bytes is too large", d.Dims, d.Type.Size)
	case l.index.sizeStored && uint64(l.Size) != size && len(d.External) == 0:
		return bad("%v layout of %d bytes, shape and type need %d", l.Kind, l.Size, size)
	}
	if l.Kind == Contiguous {
		l.Size = int64(size)
		if l.Offset >= 0 && len(d.External) == 0 {
			p.note(uint64(l.Offset-p.base), size, "data")
		}
	}
	return nil
}

// Mappable returns nil if the elements can be used in place: contiguous, allocated, inside
// the file, without filters, in this file, and little-endian integers or floats of 1 to 8
// bytes or bool. Otherwise the error says what is in the way, in words that fit behind the
// dataset's name; it wraps ErrUnsupported, or ErrCorrupt for an extent outside the file.
// The offset may still not be a multiple of the element size: see Aligned.
func (d *Dataset) Mappable() error {
	switch {
	case d.Err != nil:
		return d.Err
	case d.Null:
		return refuse("a null dataspace has no elements to map")
	case len(d.External) > 0:
		return refuse("data in external files (%s) cannot be mapped", d.External[0].Name)
	case d.Layout.Kind != Contiguous:
		return refuse("layout %s cannot be mapped", d.layoutName())
	case len(d.Filters) > 0:
		return refuse("filtered data (%v) cannot be mapped", d.Filters[0])
	case d.Layout.Size == 0:
		return refuse("shape %v has no elements to map", d.Dims)
	case d.Layout.Offset < 0:
		return refuse("storage that was never allocated cannot be mapped")
	case d.Layout.Offset > d.file.Size || d.Layout.Size > d.file.Size-d.Layout.Offset:
		msg := "data reaches past the end of the file"
		return &refusal{msg, ErrCorrupt}
	}
	return d.Type.mappable()
}

func (d *Dataset) layoutName() string {
	name := d.Layout.Kind.String()
	for i, f := range d.Filters {
		sep := ", "
		if i == 0 {
			sep = " with "
		}
		name += sep + f.String()
	}
	return name
}

func (t *Datatype) mappable() error {
	switch {
	case t.DType() == tensor.Invalid || t.Class == Enum && !t.IsBool() || t.Format.VAXOrder:
		return refuse("type %v cannot be mapped", t)
	case t.partial() || t.Class == Enum && t.Base.partial():
		return refuse("type %v cannot be mapped: some of its bits do not count", t)
	case t.swapped():
		return refuse("type %v cannot be mapped: its bytes must be swapped", t)
	}
	return nil
}

// Aligned reports whether the first element is at a multiple of the element size, so
// that a mapping of the file can be used as a slice of numbers.
func (d *Dataset) Aligned() bool {
	return d.Err == nil && d.Layout.Offset >= 0 && d.Layout.Offset%d.Type.Size == 0
}

// Records returns the length of the first axis, 0 for a scalar.
func (d *Dataset) Records() int64 {
	if len(d.Dims) == 0 {
		return 0
	}
	return d.Dims[0]
}

// Spec returns name, element type and shape of one record, the first axis being the
// records. The name is the last part of the path. The error wraps ErrUnsupported and says
// why the dataset has no records of numbers.
func (d *Dataset) Spec() (tensor.Spec, error) {
	if d.Err != nil {
		return tensor.Spec{}, d.Err
	}
	spec := tensor.Spec{Name: path.Base(d.Path), DType: d.Type.DType()}
	switch {
	case d.Null || len(d.Dims) == 0:
		return spec, refuse("a scalar or null dataspace has no records")
	case len(d.Dims) > tensor.MaxRank:
		return spec, refuse("%d axes; at most %d are possible", len(d.Dims), tensor.MaxRank)
	case spec.DType == tensor.Invalid:
		return spec, refuse("type %v has no element type here", d.Type)
	}
	for _, n := range d.Dims[1:] {
		if n > 1<<40 {
			return spec, refuse("axis of %d elements", n)
		}
		spec.Shape = append(spec.Shape, int(n))
	}
	if err := spec.Validate(); err != nil {
		return spec, &refusal{err.Error(), ErrUnsupported}
	}
	return spec, nil
}

// Value reads all elements of a compact or contiguous dataset of at most limit bytes. For
// a class that is only described the error wraps ErrUnsupported and Value has Raw.
func (d *Dataset) Value(limit int64) (v Value, err error) {
	defer guard(&err)
	return d.value(limit)
}

func (d *Dataset) value(limit int64) (Value, error) {
	l := d.Layout
	switch {
	case d.Err != nil:
		return Value{}, d.Err
	case l.Kind > Contiguous || len(d.External) > 0 || len(d.Filters) > 0:
		return Value{}, refuse("elements of layout %s are not read here", d.layoutName())
	case l.Size > limit:
		return Value{}, refuse("%d bytes of elements are more than the limit of %d", l.Size, limit)
	case l.Size > 0 && l.Offset < 0:
		return Value{}, refuse("storage was never allocated")
	}
	s := d.file.session(nil)
	s.left += 4 * limit
	if l.Size == 0 {
		return decode(s, heaps{}, d.Type, d.Dataspace, nil)
	}
	c := s.read(uint64(l.Offset-s.base), uint64(l.Size), "data")
	if c.err != nil {
		return Value{}, inPath(c.err, d.Path)
	}
	v, err := decode(s, heaps{}, d.Type, d.Dataspace, c.b)
	return v, inPath(err, d.Path)
}
