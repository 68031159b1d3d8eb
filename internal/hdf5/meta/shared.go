package meta

// A message with flagShared is not in its header: it names a committed datatype by the
// address of another header, or an object in a heap of the shared message table.

// sharedRef is the body of such a message.
type sharedRef struct {
	addr   uint64 // of an object header, if id is nil
	heapID []byte // in the shared message heap for the message's type
}

func (p *parser) sharedRef(m message, what string) (ref sharedRef, err error) {
	c := p.cursor(m, what)
	version := c.version(1, 3)
	kind := c.u8()
	if version == 1 {
		c.skip(6 + p.lenSize)
	}
	if version == 3 && kind == 1 {
		ref.heapID = c.bytes(8)
	} else {
		ref.addr = c.addr()
	}
	return ref, c.err
}

// resolve returns m itself, or the message that it stands for.
func (p *parser) resolve(m message, what string) (message, error) {
	if m.flags&flagShared == 0 {
		return m, nil
	}
	ref, err := p.sharedRef(m, what)
	if err != nil {
		return m, err
	}
	if ref.heapID != nil {
		return p.heapMessage(m.typ, ref.heapID)
	}
	h, err := p.readHeader(ref.addr)
	if err != nil {
		return m, err
	}
	target, ok := h.first(m.typ)
	if !ok || target.flags&flagShared != 0 {
		return m, p.errorAt(ErrCorrupt, ref.addr, "object header", "no message of type 0x%x that others can share", m.typ)
	}
	return target, nil
}

// datatype parses a datatype message, or follows it. Committed types are read once.
func (p *parser) datatype(m message, what string) (*Datatype, error) {
	committed := undef
	if m.flags&flagShared != 0 {
		ref, err := p.sharedRef(m, what)
		if err != nil {
			return nil, err
		}
		if t, ok := p.types[ref.addr]; ok && ref.heapID == nil {
			return t, nil
		}
		if ref.heapID == nil {
			committed = ref.addr
		}
	}
	m.typ = msgDatatype
	m, err := p.resolve(m, what)
	if err != nil {
		return nil, err
	}
	c := p.cursor(m, what)
	t := parseDatatype(c)
	if c.err == nil && committed != undef {
		t.Committed = true
		p.types[committed] = t
	}
	return t, c.err
}

// readSharedTable reads the "SMTB" table that a superblock extension names: which message
// types are in which heap.
func (p *parser) readSharedTable(m message) error {
	mc := p.cursor(m, "shared message table message")
	mc.version(0, 0)
	addr, n := mc.addr(), uint64(mc.u8())
	if mc.err != nil {
		return mc.err
	}
	entry := uint64(14 + 2*p.offSize)
	c := p.read(addr, 4+n*entry+4, "shared message table")
	c.signature("SMTB")
	for i := uint64(0); i < n && c.err == nil; i++ {
		c.version(0, 0)
		c.skip(1)
		types := c.u16()
		c.skip(4 + 2 + 2 + 2)
		c.addr() // index by hash, for writers
		heapAddr := c.addr()
		for typ := range uint16(16) {
			if types>>typ&1 != 0 {
				p.sharedAt[typ] = heapAddr
			}
		}
	}
	c.checksum()
	p.note(addr, uint64(len(c.b)), "shared message table")
	return c.err
}

// sharedHeap returns the heap of shared messages of that type.
func (p *parser) sharedHeap(typ uint16) (*fractalHeap, error) {
	if typ == msgFillOld {
		typ = msgFill
	}
	addr, ok := p.sharedAt[typ]
	if !ok {
		return nil, p.errorAt(ErrCorrupt, 0, "superblock", "no table of shared messages of type 0x%x", typ)
	}
	if h, ok := p.sharedHeaps[addr]; ok {
		return h, nil
	}
	h, err := p.readFractalHeap(addr)
	if err == nil {
		p.sharedHeaps[addr] = h
	}
	return h, err
}

func (p *parser) heapMessage(typ uint16, id []byte) (message, error) {
	h, err := p.sharedHeap(typ)
	if err != nil {
		return message{}, err
	}
	c, err := h.object(id)
	if err != nil {
		return message{}, err
	}
	return message{typ: typ, at: c.at, data: c.b}, nil
}
