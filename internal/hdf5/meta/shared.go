package meta

// messages reads the messages of object headers, including messages that several headers share. A message with
// flagShared is not in its header: it names a committed datatype by the address of another header, or an object in a
// heap of the shared message table.
type messages struct {
	src    *source
	types  map[uint64]*Datatype    // committed datatypes
	at     map[uint16]uint64       // heap of shared messages by message type
	heaps  map[uint64]*fractalHeap // heaps that were read, by address
	values globalHeaps
}

func newMessages(s *source) messages {
	return messages{src: s, types: map[uint64]*Datatype{}, at: map[uint16]uint64{},
		heaps: map[uint64]*fractalHeap{}, values: globalHeaps{}}
}

// sharedRef is the body of a message with flagShared.
type sharedRef struct {
	addr   uint64 // of an object header, if id is nil
	heapID []byte // in the shared message heap for the message's type
}

// sharedRef reads where a shared message is (IV.A.2, "Shared Message"): in the header of a committed datatype, by
// address, or in version 3 also in the file's heap of shared messages, by heap id.
func (p *messages) sharedRef(m message, what string) (ref sharedRef, err error) {
	c := m.Cursor(p.src, what)
	version := c.Version(1, 3)
	kind := c.U8()
	if version == 1 {
		c.Skip(6 + p.src.LenSize)
	}
	if version == 3 && kind == 1 {
		ref.heapID = c.Bytes(8)
	} else {
		ref.addr = c.Addr()
	}
	return ref, c.Err
}

// resolve returns m itself, or the message that a shared message m stands for. The target must not be shared in turn,
// which ends chains and cycles after one step.
func (p *messages) resolve(m message, what string) (message, error) {
	if m.Flags&flagShared == 0 {
		return m, nil
	}
	ref, err := p.sharedRef(m, what)
	if err != nil {
		return m, err
	}
	if ref.heapID != nil {
		return p.heapMessage(m.Typ, ref.heapID)
	}
	h, err := readHeader(p.src, ref.addr)
	if err != nil {
		return m, err
	}
	target, ok := h.First(m.Typ)
	if !ok || target.Flags&flagShared != 0 {
		return m, p.src.ErrorAt(ErrCorrupt, ref.addr, "object header", "no message of type 0x%x that others can share",
			m.Typ)
	}
	return target, nil
}

// datatype parses a datatype message, or the message that it refers to. Each committed type is read once.
func (p *messages) datatype(m message, what string) (*Datatype, error) {
	committed := undef
	if m.Flags&flagShared != 0 {
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
	m.Typ = msgDatatype
	m, err := p.resolve(m, what)
	if err != nil {
		return nil, err
	}
	c := m.Cursor(p.src, what)
	t := parseDatatype(c)
	if c.Err == nil && committed != undef {
		t.Committed = true
		p.types[committed] = t
	}
	return t, c.Err
}

// readSharedTable reads the "SMTB" table that a superblock extension names: which message
// types are in which heap.
func (p *messages) readSharedTable(m message) error {
	mc := m.Cursor(p.src, "shared message table message")
	mc.Version(0, 0)
	addr, n := mc.Addr(), uint64(mc.U8())
	if mc.Err != nil {
		return mc.Err
	}
	entry := uint64(14 + 2*p.src.OffSize)
	c := p.src.Read(addr, 4+n*entry+4, "shared message table")
	c.Signature("SMTB")
	for i := uint64(0); i < n && c.Err == nil; i++ {
		c.Version(0, 0)
		c.Skip(1)
		types := c.U16()
		c.Skip(4 + 2 + 2 + 2)
		c.Addr() // index by hash, for writers
		heapAddr := c.Addr()
		for typ := range uint16(16) {
			if types>>typ&1 != 0 {
				p.at[typ] = heapAddr
			}
		}
	}
	c.Checksum()
	p.src.Note(addr, uint64(len(c.B)), "shared message table")
	return c.Err
}

// sharedHeap returns the heap of shared messages of that type.
func (p *messages) sharedHeap(typ uint16) (*fractalHeap, error) {
	if typ == msgFillOld {
		typ = msgFill
	}
	addr, ok := p.at[typ]
	if !ok {
		return nil, p.src.ErrorAt(ErrCorrupt, 0, "superblock", "no table of shared messages of type 0x%x", typ)
	}
	if h, ok := p.heaps[addr]; ok {
		return h, nil
	}
	h, err := readFractalHeap(p.src, addr)
	if err == nil {
		p.heaps[addr] = h
	}
	return h, err
}

// heapMessage returns a message of the heap for its type. A file has up to eight heaps, each for some message types;
// the table in the superblock extension says which.
func (p *messages) heapMessage(typ uint16, id []byte) (message, error) {
	h, err := p.sharedHeap(typ)
	if err != nil {
		return message{}, err
	}
	c, err := h.Object(id)
	if err != nil {
		return message{}, err
	}
	return message{Typ: typ, At: c.At, Data: c.B}, nil
}
