package meta

// Announcer is an interface that the io.ReaderAt of a file may implement. Before the package reads a structure of many
// parts, it calls Announce with the parts whose places it knows, so that a source with slow reads, such as a bucket,
// can read them in parallel. The places may be wrong, as the file may be damaged, but they are inside of the file, and
// are no more than may be read.
type Announcer interface {
	Announce(parts []Extent)
}

// Announced reports whether the reader implements Announcer.
func (s *source) Announced() bool {
	_, ok := s.R.(Announcer)
	return ok
}

// Announce tells the reader where the structures are that will be read next. Parts outside of the file, or beyond the
// budget, are left out: a damaged file must not start more requests than a sound one.
func (s *source) Announce(list []Extent) {
	to, ok := s.R.(Announcer)
	if !ok {
		return
	}
	left := s.Left
	var parts []Extent
	for _, e := range list {
		addr := uint64(e.Offset)
		if addr >= uint64(s.Size-s.Base) {
			continue
		}
		e.Offset, e.Size = s.Abs(addr), min(e.Size, s.Size-s.Abs(addr))
		if left -= e.Size; e.Size <= 0 || left < 0 {
			continue
		}
		parts = append(parts, e)
	}
	if len(parts) > 0 {
		to.Announce(parts)
	}
}

// extentAt returns n bytes at an address, for Announce; an empty extent if no structure can be that large.
func extentAt(addr, n uint64, what string) Extent {
	if addr > 1<<62 || n > maxStructure {
		return Extent{What: what}
	}
	return Extent{Offset: int64(addr), Size: int64(n), What: what}
}

// Freely calls look, which reads ahead what will be read again, and restores the budget afterwards. Errors are ignored,
// since the next read of the same bytes reports them.
func (s *source) Freely(look func()) {
	left, over := s.Left, s.Over
	look()
	s.Left, s.Over = left, over
}

// maxForetold is the largest number of nodes of one level that is announced.
const maxForetold = 1 << 20
