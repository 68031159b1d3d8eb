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
	HeaderSize int64 // bytes of the object header, continuation blocks included
	Version    int   // of the object header, 1 or 2
	Err        error // wraps ErrUnsupported: the part of the description that could not be read; nil if there is none

	file *File
}

// In returns the dataset with r as the reader of its elements and its index. r must read the same file, or a copy of
// it. A File can then be kept after the reader that it was opened with is closed.
func (d *Dataset) In(r io.ReaderAt) *Dataset {
	file, data := *d.file, *d
	file.r, data.file = r, &file
	return &data
}

// Reader returns the reader of the file's bytes.
func (d *Dataset) Reader() io.ReaderAt { return d.file.r }

// ExternalFile is a part of a dataset that is in another file.
type ExternalFile struct {
	Name   string
	Offset int64 // in that file
	Size   int64 // -1 if without limit
}

// dataset parses the messages of a dataset's header.
func (p *messages) dataset(h *header) (*Dataset, error) {
	d := &Dataset{HeaderAt: p.src.Abs(h.Addr), HeaderSize: h.Size, Version: h.Version,
		Layout: Layout{Offset: -1, IndexAt: -1}}
	d.Err = h.Unknown(p.src)
	seen := false
	for _, m := range h.Msgs {
		err := p.datasetMessage(d, m)
		if d.Err == nil {
			d.Err = err
		}
		if onlyFatal(err) != nil {
			return nil, err
		}
		seen = seen || m.Typ == msgLayout
	}
	if d.Err != nil {
		return d, nil
	}
	if !seen {
		return nil, p.src.ErrorAt(ErrCorrupt, h.Addr, "object header", "dataset without layout")
	}
	return d, p.settle(d, h.Addr)
}

// datasetMessage enters one message of an object header into d. A message may be shared: it is then a reference to a
// committed datatype or to the heap of shared messages, and is resolved before it is parsed.
func (p *messages) datasetMessage(d *Dataset, m message) (err error) {
	switch m.Typ {
	case msgDatatype:
		d.Type, err = p.datatype(m, "datatype message")
		return err
	case msgDataspace, msgLayout, msgFilters, msgExternal, msgFill,
		msgFillOld:
		if m, err = p.resolve(m, "shared message"); err != nil {
			return err
		}
		c := m.Cursor(p.src, "")
		p.plainMessage(d, m.Typ, c)
		return c.Err
	}
	return nil
}

func (p *messages) plainMessage(d *Dataset, typ uint16, c *cursor) {
	switch typ {
	case msgDataspace:
		c.What = "dataspace message"
		d.Dataspace = parseSpace(c)
	case msgLayout:
		c.What = "layout message"
		d.Layout = parseLayout(c)
	case msgFilters:
		c.What = "filter pipeline message"
		d.Filters = parseFilters(c)
	case msgExternal:
		c.What = "external files message"
		d.External = p.externalFiles(c)
	case msgFill:
		c.What = "fill value message"
		d.Fill = parseFill(c)
	case msgFillOld:
		if d.Fill.State == FillDefault {
			c.What = "fill value message"
			d.Fill = parseFillOld(c)
		}
	}
}

// externalFiles parses the list of files, whose names are in a local heap.
func (p *messages) externalFiles(c *cursor) (list []ExternalFile) {
	c.Version(1, 1)
	c.Skip(3 + 2)
	n := int(c.U16())
	heapAddr := c.Addr()
	if c.Err != nil {
		return nil
	}
	heap, err := readLocalHeap(p.src, heapAddr)
	for i := 0; i < n && err == nil && c.Err == nil; i++ {
		var f ExternalFile
		name := c.Length()
		f.Offset, f.Size = int64(c.Length()), int64(c.Length())
		if c.Err == nil {
			f.Name, err = heap.Name(name)
		}
		list = append(list, f)
	}
	c.Err = cmp.Or(c.Err, err)
	return list
}

// settle checks that shape, type, layout and fill value fit each other, and computes the size if the layout message
// does not store it. Readers compute places from all four, and a contradiction would lead past the end of a buffer.
func (p *messages) settle(d *Dataset, addr uint64) error {
	l := &d.Layout
	size, ok := valueSize(d.Type, d.Dataspace)
	bad := func(format string, args ...any) error {
		return p.src.ErrorAt(ErrCorrupt, addr, "object header", format, args...)
	}
	switch {
	case l.Kind == Chunked && len(l.ChunkDims) != len(d.Dims):
		return bad("%d chunk dimensions for %d axes", len(l.ChunkDims), len(d.Dims))
	case l.Kind == Chunked && l.Params.ElemSize != d.Type.Size:
		return bad("chunks of elements of %d bytes, datatype has %d", l.Params.ElemSize, d.Type.Size)
	case d.Fill.State == FillUser && int64(len(d.Fill.Value)) != d.Type.Size:
		return bad("fill value of %d bytes, datatype has %d", len(d.Fill.Value), d.Type.Size)
	case l.Kind == Contiguous && !ok:
		return bad("shape %v of elements of %d bytes is too large", d.Dims, d.Type.Size)
	case l.Params.SizeStored && uint64(l.Size) != size && len(d.External) == 0:
		return bad("%v layout of %d bytes, shape and type need %d", l.Kind, l.Size, size)
	}
	if l.Kind == Contiguous {
		l.Size = int64(size)
		if l.Offset >= 0 && len(d.External) == 0 {
			p.src.Note(uint64(l.Offset-p.src.Base), size, "data")
		}
	}
	return nil
}

// Mappable returns nil if the elements can be used in place: contiguous, allocated, inside
// the file, without filters, in this file, and little-endian integers or floats of 1 to 8
// bytes or bool. Otherwise the error gives the reason, in words that fit after the dataset's name;
// it wraps ErrUnsupported, or ErrCorrupt for an extent outside the file. The offset may still not
// be a multiple of the element size: see Aligned.
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
		return refuseFor(ErrCorrupt, msg)
	}
	return mappable(d.Type)
}

// layoutName describes the layout with its filters, such as "chunked with shuffle, deflate".
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

// mappable returns why elements of a type cannot be used in the bytes of a mapped file. A mapping shows bytes as they
// are, so everything that a reader would have to change (order, unused bits, the format of a float) is refused.
func mappable(t *Datatype) error {
	switch {
	case t.DType() == tensor.Invalid || t.Class == Enum && !t.IsBool() || t.Format.VAXOrder:
		return refuse("type %v cannot be mapped", t)
	case t.Partial() || t.Class == Enum && t.Base.Partial():
		return refuse("type %v cannot be mapped: some of its bits do not count", t)
	case t.Swapped():
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

// IsText reports whether the elements are strings.
func (d *Dataset) IsText() bool { return d.Type.Class == String || d.Type.VlenString }

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
		return spec, refuse("type %v is not one of numbers", d.Type)
	}
	for _, n := range d.Dims[1:] {
		if n > 1<<40 {
			return spec, refuse("axis of %d elements", n)
		}
		spec.Shape = append(spec.Shape, int(n))
	}
	if err := spec.Validate(); err != nil {
		return spec, refuseFor(ErrUnsupported, err.Error())
	}
	return spec, nil
}

// Value reads all elements of a compact or contiguous dataset of at most limit bytes. For
// a class that is only described the error wraps ErrUnsupported and Value has Raw.
func (d *Dataset) Value(limit int64) (v Value, err error) {
	defer guard(&err)
	return d.value(limit)
}

// value reads all elements of a small dataset of contiguous or compact layout. Its budget grows by four times the
// limit, as strings of variable length are larger than the references that the dataset stores.
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
	s.Left += 4 * limit
	if l.Size == 0 {
		return decode(s, globalHeaps{}, d.Type, d.Dataspace, nil)
	}
	c := s.Read(uint64(l.Offset-s.Base), uint64(l.Size), "data")
	if c.Err != nil {
		return Value{}, inPath(c.Err, d.Path)
	}
	v, err := decode(s, globalHeaps{}, d.Type, d.Dataspace, c.B)
	return v, inPath(err, d.Path)
}

// fillLimit is the largest fill value that is decoded, in bytes.
const fillLimit = 1 << 10

// FillValue returns the value of elements that were never written, as Value.Any returns it for one element. ok is false
// if that value is undefined, or of a type that is only described.
func (d *Dataset) FillValue() (any, bool) {
	if d.Err != nil || d.Type == nil || d.Type.Class == Vlen || d.Type.Size > fillLimit ||
		d.Fill.State == FillUndefined {
		return nil, false
	}
	raw := d.Fill.Value
	if d.Fill.State == FillDefault {
		raw = make([]byte, d.Type.Size)
	}
	if int64(len(raw)) != d.Type.Size {
		return nil, false
	}
	v, err := decode(d.file.session(nil), globalHeaps{}, d.Type, Dataspace{}, raw)
	return v.Any(), err == nil
}

// Chunks reads the chunk index. Every chunk is in the file, at most one at each place of the grid. The error wraps
// ErrUnsupported for a dataset that is not chunked, ErrCorrupt for a corrupt index, or comes from the ReaderAt.
func (d *Dataset) Chunks() (t *ChunkTable, err error) {
	defer guard(&err)
	return d.chunks()
}

// chunks reads the index of the chunks. The dataset's layout says which of the index types of appendix C it is.
func (d *Dataset) chunks() (*ChunkTable, error) {
	switch {
	case d.Err != nil:
		return nil, d.Err
	case d.Layout.Kind != Chunked:
		return nil, refuse("layout %s has no chunks", d.Layout.Kind)
	}
	table := new(ChunkTable)
	of := chunkParams{Space: d.Dataspace, Layout: &d.Layout, Filtered: len(d.Filters) > 0,
		GroupK: int(d.file.Superblock.chunkK)}
	if err := table.Read(d.file.session(&table.Index), of); err != nil {
		return nil, inPath(err, d.Path)
	}
	return table, nil
}
