package meta

// globalHeap is one collection of variable-length values: object index to bytes.
type globalHeap map[uint16][]byte

// globalHeaps caches the collections that were read.
type globalHeaps map[uint64]globalHeap

// Object returns object index of the collection at addr.
func (h globalHeaps) Object(s *source, addr uint64, index uint32) ([]byte, error) {
	g, ok := h[addr]
	if !ok {
		var err error
		if g, err = readGlobalHeap(s, addr); err != nil {
			return nil, err
		}
		h[addr] = g
	}
	if p, ok := g[uint16(index)]; ok && index < 1<<16 {
		return p, nil
	}
	return nil, s.ErrorAt(ErrCorrupt, addr, "global heap", "no object %d", index)
}

// readGlobalHeap reads a "GCOL" collection.
func readGlobalHeap(s *source, addr uint64) (globalHeap, error) {
	c := s.Read(addr, uint64(8+s.LenSize), "global heap")
	c.Signature("GCOL")
	c.Version(1, 1)
	c.Skip(3)
	size := c.Length()
	if c.Err == nil && size < uint64(len(c.B)) {
		c.Corrupt("collection of %d bytes", size)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	c = s.Read(addr, size, "global heap")
	c.Skip(8 + s.LenSize)
	c.Pad(0)
	s.Note(addr, size, "global heap")
	g := globalHeap{}
	for c.Left() >= 8+s.LenSize && g.next(c) {
	}
	return g, c.Err
}

// next reads one object. It returns false at the free space, which comes last. Heads and bodies start at multiples of 8
// bytes.
func (g globalHeap) next(c *cursor) bool {
	index := c.U16()
	c.Skip(6)
	n := c.Length()
	c.Pad(0)
	if index == 0 || c.Err != nil {
		return false
	}
	p := c.Bytes(n)
	c.Pad(0)
	if _, ok := g[index]; ok && c.Err == nil {
		c.Corrupt("object %d occurs twice", index)
	}
	g[index] = p
	return c.Err == nil
}
