package meta

// localHeap holds the names of an old-format group.
type localHeap struct {
	src  *source
	addr uint64
	data []byte
}

// readLocalHeap reads a "HEAP" header and its data segment.
func readLocalHeap(s *source, addr uint64) (*localHeap, error) {
	c := s.Read(addr, uint64(8+2*s.LenSize+s.OffSize), "local heap")
	c.Signature("HEAP")
	c.Version(0, 0)
	c.Skip(3)
	size := c.Length()
	c.Length() // free list
	data := c.Addr()
	if c.Err != nil {
		return nil, c.Err
	}
	seg := s.Read(data, size, "local heap data")
	s.Note(addr, uint64(len(c.B)), "local heap")
	s.Note(data, size, "local heap data")
	return &localHeap{src: s, addr: addr, data: seg.B}, seg.Err
}

// Name returns the NUL-terminated string at off.
func (h *localHeap) Name(off uint64) (string, error) {
	c := &cursor{Src: h.src, B: h.data, At: h.src.Abs(h.addr), What: "local heap"}
	c.Bytes(off)
	s := c.Cstring()
	return s, c.Err
}
