package meta

// globalHeap is one collection of variable-length values: object index to bytes.
type globalHeap map[uint16][]byte

// heaps caches the collections that were read.
type heaps map[uint64]globalHeap

// object returns object index of the collection at addr.
func (h heaps) object(s *source, addr uint64, index uint32) ([]byte, error) {
	g, ok := h[addr]
	if !ok {
		var err error
		if g, err = s.readGlobalHeap(addr); err != nil {
			return nil, err
		}
		h[addr] = g
	}
	if p, ok := g[uint16(index)]; ok && index < 1<<16 {
		return p, nil
	}
	return nil, s.errorAt(ErrCorrupt, addr, "global heap", "no object %d", index)
}

// readGlobalHeap reads a "GCOL" collection.
func (s *source) readGlobalHeap(addr uint64) (globalHeap, error) {
	c := s.read(addr, uint64(8+s.lenSize), "global heap")
	c.signature("GCOL")
	c.version(1, 1)
	c.skip(3)
	size := c.length()
	if c.err == nil && size < uint64(len(c.b)) {
		c.corrupt("collection of %d bytes", size)
	}
	if c.err != nil {
		return nil, c.err
	}
	c = s.read(addr, size, "global heap")
	c.skip(8 + s.lenSize)
	c.pad(0)
	s.note(addr, size, "global heap")
	g := globalHeap{}
	for c.left() >= 8+s.lenSize && g.next(c) {
	}
	return g, c.err
}

// next reads one object; it returns false at the free space, which comes last. Heads and
// bodies start at multiples of 8 bytes.
func (g globalHeap) next(c *cursor) bool {
	index := c.u16()
	c.skip(6)
	n := c.length()
	c.pad(0)
	if index == 0 || c.err != nil {
		return false
	}
	p := c.bytes(n)
	c.pad(0)
	if _, ok := g[index]; ok && c.err == nil {
		c.corrupt("object %d occurs twice", index)
	}
	g[index] = p
	return c.err == nil
}
