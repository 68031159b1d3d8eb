package hdf5

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// part is the part of a dataset's elements that becomes a field: the whole element, or a member of a compound.
type part struct {
	name  string // name of the member, such as "/pos/x"; "" for the whole element
	typ   *meta.Datatype
	at    int64    // offset of the part in a record, in bytes
	axes  []stride // axes of the elements within a record, the outermost first
	field source.Field
	label bool // the numbers of an enumeration are class numbers: 0 to n-1
	// numbers has, by class, the class's number in an enumeration that is renumbered, ascending; nil for any other
	// part.
	numbers []int64
	chars   bool // the elements of a record are the letters of one text
	texts   bool // a record is several texts, which become their JSON array
	files   bool // a record is several lists of bytes, each an image file
}

// stride is an axis of a part: n elements at a distance of bytes in a record.
type stride struct{ n, bytes int64 }

// mostParts limits how many fields a dataset can make. Compounds in compounds multiply their members, so a small
// hostile file could otherwise describe any number of fields.
const mostParts = 4096

// parts returns the fields that the elements of a dataset make.
func parts(d *meta.Dataset) (list []part, err error) {
	switch {
	case d.Err != nil:
		return nil, d.Err
	case d.Null || len(d.Dims) == 0:
		return nil, fmt.Errorf("a scalar or null dataspace has no records: %w", meta.ErrUnsupported)
	}
	p := part{typ: d.Type, axes: strides(d.Dims[1:], d.Type.Size)}
	if d.Type.Class == meta.Compound && len(d.Type.Members) > mostParts {
		return nil, fmt.Errorf("a compound of %d members: %w", len(d.Type.Members), meta.ErrUnsupported)
	}
	list, err = p.expand(d.Path)
	for i := range list {
		f := &list[i].field
		if f.Meaning = d.Meaning(); !f.Ragged {
			f.Dims = layout.NamedAxes(d.Dimensions(), f.Shape)
		}
		if len(f.Shape) == 1 && strings.HasPrefix(list[i].name, "/values_block_") {
			f.Features = columnsOfBlock(d, list[i].name[1:], f.Shape[0])
		}
	}
	return list, err
}

// strides returns the axes of an array in C order whose elements have that size.
func strides(dims []int64, size int64) []stride {
	list := make([]stride, len(dims))
	for i := len(dims) - 1; i >= 0; i-- {
		list[i] = stride{dims[i], size}
		// The sizes come from the file and are multiplied here for the first time.
		if dims[i] > 0 && size > math.MaxInt64/dims[i] {
			size = 0 // the shape overflows; fieldOf refuses a record of that size
		}
		size *= dims[i]
	}
	return list
}

// expand returns the parts of p: p itself, or the members of a compound, recursively. Arrays in the type become
// further axes, and a complex number becomes an axis of two.
func (p part) expand(path string) (list []part, err error) {
	for p.typ.Class == meta.Array {
		p.axes = append(slices.Clone(p.axes), strides(p.typ.Dims, p.typ.Base.Size)...)
		p.typ = p.typ.Base
	}
	if p.typ.IsComplex() {
		p.axes, p.typ = append(slices.Clone(p.axes), stride{2, p.typ.Size / 2}), p.typ.Part()
	}
	if p.typ.Class != meta.Compound {
		p.field, err = p.fieldOf(layout.FieldName(trim(path) + p.name))
		p.field.Origin = trim(path) + p.name
		return []part{p}, err
	}
	for _, m := range p.typ.Members {
		// The axes of the compound stay: an array of compounds becomes an array for each member.
		inner := part{name: p.name + "/" + m.Name, typ: m.Type, at: p.at + m.Offset, axes: p.axes}
		more, err := inner.expand(path)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", inner.name[1:], err)
		}
		if list = append(list, more...); len(list) > mostParts {
			return nil, fmt.Errorf("a compound of more than %d members: %w", mostParts, meta.ErrUnsupported)
		}
	}
	return list, nil
}

// fieldOf returns the field of a part that is no compound. It adjusts p for how the value is read: letters that
// make a text, classes of an enumeration, bytes of an opaque type.
//
//	integers, floats, booleans, complex  numbers; complex ones as two floats
//	strings, arrays of one letter each   a text
//	several strings in a record          one text: the JSON array
//	enumeration of 0 to n-1              class numbers; otherwise the numbers
//	opaque                               bytes
//	variable length                      any number of numbers
func (p *part) fieldOf(name string) (f source.Field, err error) {
	refuse := func(format string, args ...any) (source.Field, error) {
		return f, fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), meta.ErrUnsupported)
	}
	t := p.typ
	switch {
	case t.Class == meta.String && t.Size == 1 && len(p.axes) == 1:
		p.chars = true
		return source.ContentField(name, tensor.Text), nil
	case t.Class == meta.String || t.VlenString:
		p.texts = p.count() != 1
		return source.ContentField(name, tensor.Text), nil
	case t.Class == meta.Enum && !t.IsBool() && p.count() == 1:
		if names := t.Classes(); names != nil {
			p.label = true
			return source.LabelField(name, names), nil
		}
	case t.Class == meta.Opaque:
		p.axes = append(slices.Clone(p.axes), stride{t.Size, 1})
		p.typ = &meta.Datatype{Class: meta.Fixed, Size: 1, Precision: 8}
	}
	ragged := t.Class == meta.Vlen
	if ragged {
		if t = t.Base; p.count() != 1 {
			if t.DType() != tensor.Uint8 || len(p.axes) != 1 {
				return f, p.severalLists()
			}
			p.files = true
			return source.ContentField(name, tensor.Images), nil
		}
	} else {
		t = p.typ
	}
	dtype := t.DType()
	if dtype == tensor.Invalid || t.Format.VAXOrder || ragged && int64(dtype.Size()) != t.Size {
		return refuse("type %v is not one of numbers", p.typ)
	}
	if ragged {
		return source.RaggedField(name, dtype), nil
	}
	var shape []int
	for _, a := range p.axes {
		if a.n > 1<<40 {
			return refuse("axis of %d elements", a.n)
		}
		shape = append(shape, int(a.n))
	}
	f = source.NumberField(name, dtype, shape...)
	if err := f.Spec.Validate(); err != nil {
		return refuse("%v", err)
	}
	return f, nil
}

// severalLists is the error of a part whose records are several lists that are not files of images.
func (p *part) severalLists() error {
	return fmt.Errorf("%v: a record of several lists cannot become a field: %w", p.typ, meta.ErrUnsupported)
}

// count returns how many elements a record has, or MaxInt64 if the product overflows.
func (p *part) count() int64 {
	n := int64(1)
	for _, a := range p.axes {
		if a.n > 0 && n > math.MaxInt64/a.n {
			return math.MaxInt64
		}
		n *= a.n
	}
	return n
}

// value appends the value of the part in a record. native says that the numbers in the record have this machine's byte
// order already.
func (p *part) value(buf, record []byte, native bool, heap *meta.Heap) ([]byte, error) {
	from := len(buf)
	switch t := p.typ; {
	case p.texts:
		return p.items(buf, record, heap)
	case p.files:
		return p.images(buf, record, heap)
	case t.Class == meta.Vlen:
		return p.list(buf, record, heap)
	case t.Class == meta.String:
		raw := record[p.at:]
		if p.chars {
			raw = p.gather(nil, raw)
		} else {
			raw = raw[:t.Size]
		}
		return append(buf, t.Unpad(raw)...), nil
	}
	buf = p.gather(buf, record[p.at:])
	if !native {
		decode(p.typ, buf[from:])
	}
	if !p.label {
		return buf, nil
	}
	x := integer(p.typ.Base, buf[from:])
	class, ok := p.class(x)
	if !ok {
		return buf, source.ValueError("%d has no name in its enumeration; read the numbers: --fields '%s:%v'", x,
			p.field.Origin, p.typ.Base.DType())
	}
	return binary.LittleEndian.AppendUint64(buf[:from], uint64(class)), nil
}

// class returns the class of a number in an enumeration, and whether the number has one.
func (p *part) class(x int64) (int64, bool) {
	if p.numbers == nil {
		return x, x >= 0 && x < int64(len(p.field.Classes))
	}
	// The numbers are sorted, and a class is the position of its number.
	at, ok := slices.BinarySearchFunc(p.numbers, x, p.compare)
	return int64(at), ok
}

// compare compares two numbers of an enumeration. Numbers of an unsigned base are compared as unsigned.
func (p *part) compare(a, b int64) int {
	if p.typ.Base.Signed {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(uint64(a), uint64(b))
}

// renumber makes an enumeration a label whose classes are the names, ordered by their numbers. Labels have to be 0 to
// n-1, as loss functions index by them, and the numbers of an enumeration may be any. Names or numbers that occur twice
// are refused, since a value would have two classes.
func (p *part) renumber() error {
	members := slices.Clone(p.typ.Members)
	slices.SortFunc(members, func(a, b meta.Member) int { return p.compare(a.Value, b.Value) })
	var names []string
	for _, m := range members {
		if slices.Contains(names, m.Name) || slices.Contains(p.numbers, m.Value) {
			return fmt.Errorf("%v: a name or a number comes twice in its enumeration: %w", p.typ, meta.ErrUnsupported)
		}
		names, p.numbers = append(names, m.Name), append(p.numbers, m.Value)
	}
	if p.count() != 1 || len(names) == 0 || len(names) > column.MaxClasses {
		return fmt.Errorf("%v: labels are one number a record, of 1 to %d classes: %w", p.typ, column.MaxClasses,
			meta.ErrUnsupported)
	}
	p.label, p.field.Field = true, source.LabelField(p.field.Name, names).Field
	return nil
}

// items appends the JSON array of the texts of a record.
func (p *part) items(buf, record []byte, heap *meta.Heap) ([]byte, error) {
	elements := p.gather(nil, record[p.at:])
	one := part{typ: p.typ, field: p.field}
	list := make([][]byte, 0, p.count())
	for ; len(elements) > 0; elements = elements[p.typ.Size:] {
		text, err := one.value(nil, elements, true, heap)
		if err != nil {
			return buf, err
		}
		list = append(list, text)
	}
	return array.AppendTexts(buf, list)
}

// images appends the image files of a record, which are its lists of bytes.
func (p *part) images(buf, record []byte, heap *meta.Heap) ([]byte, error) {
	elements := p.gather(nil, record[p.at:])
	files, one := array.Files{Record: buf}, part{typ: p.typ}
	for ; len(elements) > 0; elements = elements[p.typ.Size:] {
		file, err := one.list(nil, elements, heap)
		if err == nil {
			err = files.Add(file)
		}
		if err != nil {
			return buf, err
		}
	}
	return files.Record, nil
}

// list appends a value of variable length. The record has only a reference into the file's heap, whose size and length
// the heap checks.
func (p *part) list(buf, record []byte, heap *meta.Heap) ([]byte, error) {
	if int64(heap.RefBytes()) != p.typ.Size {
		return buf, fmt.Errorf("references of %d bytes: %w", p.typ.Size, meta.ErrCorrupt)
	}
	size := int64(1)
	if !p.typ.VlenString {
		size = p.typ.Base.Size
	}
	_, b, err := heap.Elements(record[p.at:p.at+p.typ.Size], size)
	switch {
	case err != nil:
		return buf, err
	case p.typ.VlenString:
		return append(buf, p.typ.Unpad(b)...), nil
	}
	from := len(buf)
	buf = append(buf, b...)
	decode(p.typ.Base, buf[from:])
	return buf, nil
}

// gather appends the elements of the part, contiguously.
func (p *part) gather(buf, record []byte) []byte { return gatherAxes(buf, record, p.axes, p.typ.Size) }

// gatherAxes appends the elements of a part of a record. Inner axes whose elements are contiguous are copied at
// once, so that each copy is as long as the part allows.
func gatherAxes(buf, record []byte, axes []stride, size int64) []byte {
	n, end := size, len(axes)
	for end > 0 && axes[end-1].bytes == n { // side by side
		end--
		n *= axes[end].n
	}
	if end == 0 {
		return append(buf, record[:n]...)
	}
	a := axes[0]
	for i := range a.n {
		buf = gatherAxes(buf, record[i*a.bytes:], axes[1:], size)
	}
	return buf
}

// decode converts numbers of a type to this machine's byte order, in place.
func decode(t *meta.Datatype, b []byte) {
	if f := chunk.Native(t); f != nil {
		f(b)
	}
}

// integer returns an integer of type t, sign-extended if the type is signed.
func integer(t *meta.Datatype, b []byte) int64 {
	var word [8]byte
	copy(word[:], b)
	x := int64(binary.LittleEndian.Uint64(word[:]))
	if shift := 64 - 8*len(b); t.Signed {
		return x << shift >> shift
	}
	return x
}
