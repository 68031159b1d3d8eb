package archive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// memberKind is how the bytes of a member become a value.
type memberKind uint8

const (
	wholeMember  memberKind = iota // they are it
	imageMembers                   // they are it, whatever the extension of an image's name is
	cellMember                     // they are text, as in a cell of a table
	jsonMember                     // one value of a JSON object
	npyMember                      // the elements of a .npy file
)

// memberColumn is one value of the samples of an archive.
type memberColumn struct {
	name  string // as in --fields: an extension, or json.KEY
	kind  memberKind
	ext   string // of the member, imageMembers aside
	exact bool   // of plain images only those with the extension
	key   string // of jsonMember
	typ   column.Type
	field source.Field
}

// takes reports whether the value comes from members with that extension.
func (c memberColumn) takes(ext string) bool {
	if c.kind == imageMembers {
		return plainImage(ext)
	}
	return c.ext == ext
}

// plainImage reports whether an extension is that of an image and nothing else.
func plainImage(ext string) bool {
	return !strings.Contains(ext, ".") && source.IsImageName("x."+ext)
}

// put fills in the value of a sample.
func (c memberColumn) put(v *source.Values, field int, g group) error {
	m := c.find(g)
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

// value returns the cell of a JSON member that has the column's key.
func (c memberColumn) value(data []byte) (found column.Cell, err error) {
	err = column.EachMember(data, "", 0, func(key string, value column.Cell) {
		if key == c.key {
			found = value
		}
	})
	return found, err
}

// putNPY makes the elements of an array, which must be of the field's type, the value.
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
	if f.DType != c.field.DType || !slices.Equal(got, want) || c.field.Ragged && len(f.Shape) == 0 {
		return source.ValueError("the array is %v %v; that of the first sample makes it %v %v", f.DType, f.Shape,
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
	if h.BigEndian {
		b = array.Swapped(h.DType.Size())(b)
	}
	v.Keep(field, b)
	return nil
}

// npyMemberField returns the field of samples that have such an array each.
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
