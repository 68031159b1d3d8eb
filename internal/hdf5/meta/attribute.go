package meta

import (
	"cmp"
	"errors"
	"slices"
)

// Attr is one attribute. If Err is not nil, its class is only described, or it is too large, and Value has only Type,
// Dims and Raw, or less; errors.Is(Err, ErrUnsupported) holds.
type Attr struct {
	Name  string
	Space Dataspace
	Type  *Datatype
	Value Value
	Err   error
}

// Attrs is the list of attributes of an object, in name order.
type Attrs []Attr

// Get returns the attribute of that name.
func (a Attrs) Get(name string) (*Attr, bool) {
	i, ok := slices.BinarySearchFunc(a, name, func(x Attr, n string) int { return cmp.Compare(x.Name, n) })
	if !ok {
		return nil, false
	}
	return &a[i], true
}

// attrs reads all attributes of an object: the attributes in its header, and the attributes in dense storage.
func (p *messages) attrs(h *header) (Attrs, error) {
	var list Attrs
	for _, m := range h.Msgs {
		if m.Typ != msgAttribute {
			continue
		}
		m, err := p.resolve(m, "shared attribute")
		if err != nil {
			return nil, err
		}
		a, err := p.attr(m.Cursor(p.src, "attribute"))
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	dense, err := p.denseAttrs(h)
	if err != nil {
		return nil, err
	}
	list = append(list, dense...)
	slices.SortStableFunc(list, func(a, b Attr) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// denseAttrs reads the attributes that a fractal heap holds.
func (p *messages) denseAttrs(h *header) (Attrs, error) {
	m, ok := h.First(msgAttrInfo)
	if !ok {
		return nil, nil
	}
	c := m.Cursor(p.src, "attribute info")
	c.Version(0, 0)
	if c.U8()&1 != 0 {
		c.Skip(2)
	}
	heapAddr, root := c.Addr(), c.Addr()
	if c.Err != nil || heapAddr == undef {
		return nil, c.Err
	}
	var list Attrs
	err := p.denseObjects(heapAddr, root, treeAttrName, func(rec *cursor) (id []byte, shared bool) {
		return rec.Bytes(8), rec.U8()&flagShared != 0
	}, func(obj *cursor) error {
		obj.What = "attribute"
		a, err := p.attr(obj)
		list = append(list, a)
		return err
	})
	return list, err
}

// attr parses an attribute message of version 1 to 3.
func (p *messages) attr(c *cursor) (Attr, error) {
	version := c.Version(1, 3)
	flags := c.U8() // reserved in version 1
	nameLen, typeLen, spaceLen := c.U16(), c.U16(), c.U16()
	if version == 3 {
		c.Skip(1) // character set of the name
	}
	part := func(n uint16) message {
		start := c.Pos
		m := message{At: c.At + int64(c.Pos), Data: c.Bytes(uint64(n))}
		if version == 1 {
			c.Pad(start)
		}
		return m
	}
	name, typ, space := part(nameLen), part(typeLen), part(spaceLen)
	if c.Err != nil {
		return Attr{}, c.Err
	}
	a := Attr{Name: untilNUL(name.Data)}
	if version > 1 {
		typ.Flags, space.Flags = flags<<1&flagShared, flags&flagShared
	}
	err := p.attrBody(&a, c, typ, space)
	return a, err
}

// attrBody parses type and space, and decodes the rest of c as elements. The number of elements comes from the file, so
// it is compared with the bytes that are left before any memory is allocated.
func (p *messages) attrBody(a *Attr, c *cursor, typ, space message) error {
	space.Typ = msgDataspace
	space, err := p.resolve(space, "dataspace of attribute")
	if err != nil {
		return err
	}
	sc := space.Cursor(p.src, "dataspace of attribute")
	a.Space = parseSpace(sc)
	t, err := p.datatype(typ, "datatype of attribute")
	if err = cmp.Or(sc.Err, err); err != nil {
		a.Err = err
		return onlyFatal(err)
	}
	a.Type = t
	n, ok := valueSize(t, a.Space)
	if !ok || n > uint64(c.Left()) {
		c.Corrupt("attribute %q: %d elements of %d bytes do not fit %d bytes", a.Name, a.Space.Dims, t.Size, c.Left())
		return c.Err
	}
	a.Value, a.Err = decode(p.src, p.values, t, a.Space, c.Bytes(n))
	return onlyFatal(a.Err)
}

// onlyFatal drops errors of a value or object that is valid and that this package does not read. Such an error is kept
// with the value or object, and the rest of the file stays readable.
func onlyFatal(err error) error {
	if errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}
