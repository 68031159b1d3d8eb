package meta

// localHeap holds the names of an old-format group.
type localHeap struct {
	src  *source
	addr uint64
	data []byte
}

// readLocalHeap reads a "HEAP" header and its data segment.
func (s *source) readLocalHeap(addr uint64) (*localHeap, error) {
	c := s.read(addr, uint64(8+2*s.lenSize+s.offSize), "local heap")
	c.signature("HEAP")
	c.version(0, 0)
	c.skip(3)
	size := c.length()
	c.length() // free list
	data := c.addr()
	if c.err != nil {
		return nil, c.err
	}
	seg := s.read(data, size, "local heap data")
	s.note(addr, uint64(len(c.b)), "local heap")
	s.note(data, size, "local heap data")
	return &localHeap{src: s, addr: addr, data: seg.b}, seg.err
}

// name returns the NUL-terminated string at off.
func (h *localHeap) name(off uint64) (string, error) {
	c := &cursor{src: h.src, b: h.data, at: h.src.abs(h.addr), what: "local heap"}
	c.bytes(off)
	s := c.cstring()
	return s, c.err
}
