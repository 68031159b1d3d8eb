package meta

import (
	"cmp"
	"errors"
	"slices"
)

// Attr is one attribute. Err says why Value has only Type, Dims and Raw, or less: its class
// is only described, or it is too large; errors.Is(Err, ErrUnsupported) holds.
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

// attrs reads all attributes of an object, in its header and in dense storage.
func (p *parser) attrs(h *header) (Attrs, error) {
	var list Attrs
	for _, m := range h.msgs {
		if m.typ != msgAttribute {
			continue
		}
		m, err := p.resolve(m, "shared attribute")
		if err != nil {
			return nil, err
		}
		a, err := p.attr(p.cursor(m, "attribute"))
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
func (p *parser) denseAttrs(h *header) (Attrs, error) {
	m, ok := h.first(msgAttrInfo)
	if !ok {
		return nil, nil
	}
	c := p.cursor(m, "attribute info")
	c.version(0, 0)
	if c.u8()&1 != 0 {
		c.skip(2)
	}
	heapAddr, tree := c.addr(), c.addr()
	if c.err != nil || heapAddr == undef {
		return nil, c.err
	}
	var list Attrs
	err := p.denseObjects(heapAddr, tree, btreeAttrName, func(rec *cursor) (id []byte, shared bool) {
		return rec.bytes(8), rec.u8()&flagShared != 0
	}, func(obj *cursor) error {
		obj.what = "attribute"
		a, err := p.attr(obj)
		list = append(list, a)
		return err
	})
	return list, err
}

// attr parses an attribute message of version 1 to 3.
func (p *parser) attr(c *cursor) (Attr, error) {
	version := c.version(1, 3)
	flags := c.u8() // reserved in version 1
	nameLen, typeLen, spaceLen := c.u16(), c.u16(), c.u16()
	if version == 3 {
		c.skip(1) // character set of the name
	}
	part := func(n uint16) message {
		start := c.pos
		m := message{at: c.at + int64(c.pos), data: c.bytes(uint64(n))}
		if version == 1 {
			c.pad(start)
		}
		return m
	}
	name, typ, space := part(nameLen), part(typeLen), part(spaceLen)
	if c.err != nil {
		return Attr{}, c.err
	}
	a := Attr{Name: untilNUL(name.data)}
	if version > 1 {
		typ.flags, space.flags = flags<<1&flagShared, flags&flagShared
	}
	err := p.attrBody(&a, c, typ, space)
	return a, err
}

// attrBody parses type and space, and decodes the rest of c as elements.
func (p *parser) attrBody(a *Attr, c *cursor, typ, space message) error {
	space.typ = msgDataspace
	space, err := p.resolve(space, "dataspace of attribute")
	if err != nil {
		return err
	}
	sc := p.cursor(space, "dataspace of attribute")
	a.Space = parseDataspace(sc)
	t, err := p.datatype(typ, "datatype of attribute")
	if err = cmp.Or(sc.err, err); err != nil {
		a.Err = err
		return onlyFatal(err)
	}
	a.Type = t
	n, ok := valueSize(t, a.Space)
	if !ok || n > uint64(c.left()) {
		c.corrupt("attribute %q: %d elements of %d bytes do not fit %d bytes", a.Name, a.Space.Dims, t.Size, c.left())
		return c.err
	}
	a.Value, a.Err = decode(p.source, p.heaps, t, a.Space, c.bytes(n))
	return onlyFatal(a.Err)
}

// onlyFatal drops errors that concern one value or object only: valid, but not read.
func onlyFatal(err error) error {
	if errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}
