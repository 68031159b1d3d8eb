package heap

import "github.com/penstock/penstock/internal/hdf5/meta/source"

// Local holds the names of an old-format group.
type Local struct {
	src  *source.Source
	addr uint64
	data []byte
}

// ReadLocal reads a "HEAP" header and its data segment.
func ReadLocal(s *source.Source, addr uint64) (*Local, error) {
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
	return &Local{src: s, addr: addr, data: seg.B}, seg.Err
}

// Name returns the NUL-terminated string at off.
func (h *Local) Name(off uint64) (string, error) {
	c := &source.Cursor{Src: h.src, B: h.data, At: h.src.Abs(h.addr), What: "local heap"}
	c.Bytes(off)
	s := c.Cstring()
	return s, c.Err
}
