package meta

// linkMessage parses a link message. Dense groups store the same bytes in their heap.
func linkMessage(c *cursor) (l rawLink, err error) {
	c.Version(1, 1)
	flags := c.U8()
	kind := uint8(0)
	if flags&0x08 != 0 {
		kind = c.U8()
	}
	if flags&0x04 != 0 {
		l.order = int64(c.U64())
	}
	if flags&0x10 != 0 {
		c.Skip(1) // character set
	}
	l.name = string(c.Bytes(c.Uint(1 << (flags & 3))))
	switch {
	case kind == 0:
		l.addr = c.Addr()
	case kind == 1:
		l.kind = Soft
		l.target = string(c.Bytes(uint64(c.U16())))
	case kind == 64:
		l.kind = External
		l.external(c)
	case kind < 64:
		c.Corrupt("link %q of reserved type %d", l.name, kind)
	default:
		l.kind = UserDefined
	}
	return l, c.Err
}

// external reads the value of an external link: flags, file name, and the path in that file.
func (l *rawLink) external(c *cursor) {
	v := &cursor{Src: c.Src, B: c.Bytes(uint64(c.U16())), At: c.At, What: c.What}
	v.Skip(1)
	l.file, l.target = v.Cstring(), v.Cstring()
	if c.Err == nil {
		c.Err = v.Err
	}
}

// compactLinks reads the link messages of a header.
func (p *messages) compactLinks(h *header) (links []rawLink, err error) {
	for _, m := range h.Msgs {
		if m.Typ != msgLink {
			continue
		}
		l, err := linkMessage(m.Cursor(p.src, "link message"))
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

// denseLinks reads the links in a fractal heap, if the group has one, and reports whether the group tracks the order in
// which links are created.
func (p *messages) denseLinks(m message) (links []rawLink, tracked bool, err error) {
	c := m.Cursor(p.src, "link info message")
	c.Version(0, 0)
	if tracked = c.U8()&1 != 0; tracked {
		c.Skip(8) // highest creation order
	}
	heapAddr, root := c.Addr(), c.Addr()
	if c.Err != nil || heapAddr == undef {
		return nil, tracked, c.Err
	}
	err = p.denseObjects(heapAddr, root, treeLinkName, func(rec *cursor) (id []byte, shared bool) {
		rec.Skip(4) // hash of the name
		return rec.Bytes(7), false
	}, func(obj *cursor) error {
		obj.What = "link message"
		l, err := linkMessage(obj)
		links = append(links, l)
		return err
	})
	return links, tracked, err
}
