package archive

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// memberKind says how the bytes of members become a value.
type memberKind uint8

const (
	wholeMember     memberKind = iota // the bytes of the member are the value
	imageMembers                      // like wholeMember, and any extension of a plain image matches
	numberedMembers                   // a list of images, sorted by the numbers before their extensions
	cellMember                        // a text that is parsed like a cell of a table
	jsonMember                        // one value of a JSON object
	npyMember                         // the elements of a .npy file
)

// memberColumn is one field of the samples of an archive, and where it comes from.
type memberColumn struct {
	name  string // as --fields names it: an extension, or json.KEY
	kind  memberKind
	ext   string // extension of the member; unused for imageMembers and numberedMembers
	exact bool   // samples have several images, so ext selects one and imageMembers is not used
	key   string // the key of a jsonMember
	typ   column.Type
	field source.Field
}

// takes reports whether the value comes from members with an extension.
func (c memberColumn) takes(ext string) bool {
	switch c.kind {
	case imageMembers:
		return plainImage(ext)
	case numberedMembers:
		return imageNumber(ext) >= 0
	}
	return c.ext == ext
}

// imageNumber returns the number in the extension of one of several images of a sample: 1 for 1.jpg and for 01.jpg.
// It is -1 for other extensions. Numbers beyond int64 become the largest int64; equal numbers are an error later.
func imageNumber(ext string) int64 {
	first, last, _ := strings.Cut(ext, ".")
	n, err := strconv.ParseUint(first, 10, 63)
	// ErrRange is no error here: ParseUint then returns the largest number, which sorts last.
	if errors.Is(err, strconv.ErrSyntax) || !plainImage(last) {
		return -1
	}
	return int64(n)
}

// numbered returns the numbered images of a sample, sorted by number.
func (g group) numbered() (list []member) {
	for _, m := range g.members {
		if imageNumber(m.ext) >= 0 {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b member) int { return cmp.Compare(imageNumber(a.ext), imageNumber(b.ext)) })
	return list
}

// plainImage reports whether an extension names an image format and nothing else, as jpg does and seg.png does not.
func plainImage(ext string) bool {
	return !strings.Contains(ext, ".") && source.IsImageName("x."+ext)
}

// put sets a field to the value of the column in a sample.
func (c memberColumn) put(v *source.Values, field int, g group) error {
	if c.kind == numberedMembers {
		return putNumbered(v, field, g)
	}
	m := c.find(g)
	// A missing member of variable length is an empty value, as WebDataset's samples need not have all members. For
	// fixed sizes and images nothing can stand for it.
	if m == nil && c.field.Ragged && !c.field.Image() {
		v.Make(field, 0)
		return nil
	}
	if m == nil {
		return source.ValueError("it is missing")
	}
	data, err := m.load()
	if err != nil {
		return err
	}
	switch c.kind {
	case cellMember:
		return c.typ.Put(v, field, column.Cell{Text: strings.TrimSpace(string(data))}, source.File{})
	case jsonMember:
		value, err := c.value(data)
		if err != nil {
			return err
		}
		return c.typ.Put(v, field, value, source.File{})
	case npyMember:
		return c.putNPY(v, field, data)
	}
	v.Borrow(field, data)
	return nil
}

// putNumbered sets a field of content Images to the numbered images of a sample. The size is checked after each
// image, before memory is allocated for the next.
func putNumbered(v *source.Values, field int, g group) error {
	record := v.Buffer(field)
	list := g.numbered()
	for i, m := range list {
		if i > 0 && imageNumber(list[i-1].ext) == imageNumber(m.ext) {
			return source.ValueError("%s and %s have one number, and thus no order; rename one of them", list[i-1].name, m.name)
		}
		data, err := m.load()
		if err != nil {
			return err
		}
		if record = tensor.AppendImage(record, data); len(record) > source.MaxValue {
			return source.ValueError("its images have more than %d bytes", source.MaxValue)
		}
	}
	v.Keep(field, record)
	return nil
}

// find returns the member with the value in a group, nil if the group has no such member.
func (c memberColumn) find(g group) *member {
	if c.kind != imageMembers {
		return g.get(c.ext)
	}
	i := slices.IndexFunc(g.members, func(m member) bool { return plainImage(m.ext) })
	if i < 0 {
		return nil
	}
	return &g.members[i]
}

// value returns the cell under the column's key in a JSON member.
func (c memberColumn) value(data []byte) (found column.Cell, err error) {
	err = column.EachMember(data, "", 0, func(key string, value column.Cell) {
		if key == c.key {
			found = value
		}
	})
	return found, err
}

// putNPY sets a field to the elements of a .npy member. The type and shape must be the field's, which the first
// pass decided from all members.
func (c memberColumn) putNPY(v *source.Values, field int, data []byte) error {
	h, err := array.ReadNPY(bytes.NewReader(data))
	if err != nil {
		return source.ValueError("%w", err)
	}
	f, err := npyMemberField(c.field.Name, h)
	if err != nil {
		return source.ValueError("%w", err)
	}
	want := tensor.Shape(c.field.Shape)
	got := f.Shape
	if c.field.Ragged && len(got) > 0 {
		got = got[1:]
	}
	// The first pass has looked at all arrays, so a difference means that this array was unreadable in that
	// pass, or has changed.
	if f.DType != c.field.DType || !slices.Equal(got, want) || c.field.Ragged && len(f.Shape) == 0 {
		return source.ValueError("the array is %v %v; the first sample's array makes it %v %v", f.DType, f.Shape,
			c.field.DType, want)
	}
	elements := data[h.Offset:]
	size := int64(1)
	for _, n := range h.Shape {
		size *= n
	}
	size *= int64(h.DType.Size())
	if int64(len(elements)) < size {
		return errors.New("the array is cut short")
	}
	b := append(v.Buffer(field), elements[:size]...)
	// Swapped returns nil for bytes, which no big-endian header has.
	if h.BigEndian {
		b = array.Swapped(h.DType.Size())(b)
	}
	v.Keep(field, b)
	return nil
}

// npyMemberField returns the field of samples that each have an array of this type and shape. An axis is limited
// before it is converted to int.
func npyMemberField(name string, h array.Header) (source.Field, error) {
	shape := make([]int, len(h.Shape))
	for i, n := range h.Shape {
		if n > source.MaxValue {
			return source.Field{}, fmt.Errorf("an axis of %d", n)
		}
		shape[i] = int(n)
	}
	return source.NumberField(name, h.DType, shape...), nil
}
