package meta

// linkMessage parses a link message, which is also what dense groups keep in their heap.
func linkMessage(c *cursor) (l rawLink, err error) {
	c.version(1, 1)
	flags := c.u8()
	kind := uint8(0)
	if flags&0x08 != 0 {
		kind = c.u8()
	}
	if flags&0x04 != 0 {
		c.skip(8) // creation order
	}
	if flags&0x10 != 0 {
		c.skip(1) // character set
	}
	l.name = string(c.bytes(c.uint(1 << (flags & 3))))
	switch {
	case kind == 0:
		l.addr = c.addr()
	case kind == 1:
		l.kind = Soft
		l.target = string(c.bytes(uint64(c.u16())))
	case kind == 64:
		l.kind = External
		l.external(c)
	case kind < 64:
		c.corrupt("link %q of reserved type %d", l.name, kind)
	default:
		l.kind = UserDefined
	}
	return l, c.err
}

// external reads the value of an external link: flags, file name, path in it.
func (l *rawLink) external(c *cursor) {
	v := &cursor{src: c.src, b: c.bytes(uint64(c.u16())), at: c.at, what: c.what}
	v.skip(1)
	l.file, l.target = v.cstring(), v.cstring()
	if c.err == nil {
		c.err = v.err
	}
}

// compactLinks reads the link messages of a header.
func (p *parser) compactLinks(h *header) (links []rawLink, err error) {
	for _, m := range h.msgs {
		if m.typ != msgLink {
			continue
		}
		l, err := linkMessage(p.cursor(m, "link message"))
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

// denseLinks reads the links that a fractal heap holds, if the group has one.
func (p *parser) denseLinks(m message) (links []rawLink, err error) {
	c := p.cursor(m, "link info message")
	c.version(0, 0)
	if c.u8()&1 != 0 {
		c.skip(8) // highest creation order
	}
	heapAddr, tree := c.addr(), c.addr()
	if c.err != nil || heapAddr == undef {
		return nil, c.err
	}
	err = p.denseObjects(heapAddr, tree, btreeLinkName, func(rec *cursor) (id []byte, shared bool) {
		rec.skip(4) // hash of the name
		return rec.bytes(7), false
	}, func(obj *cursor) error {
		obj.what = "link message"
		l, err := linkMessage(obj)
		links = append(links, l)
		return err
	})
	return links, err
}
