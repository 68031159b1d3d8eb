package meta

// Announcer is an interface that the io.ReaderAt of a file may implement. Before the package
// reads a structure that has many parts, it calls Announce with the parts whose place it knows, so
// that a source with slow reads can make them in parallel. The parts may be wrong, as the file may
// be, but they are inside of the file, and are no more than may be read.
type Announcer interface {
	Announce(parts []Extent)
}

// Announced reports whether the reader implements Announcer.
func (s *source) Announced() bool {
	_, ok := s.R.(Announcer)
	return ok
}

// Announce reports where structures are that will be read next.
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

// extentAt returns n bytes at an address for announce; of more than can be, none.
func extentAt(addr, n uint64, what string) Extent {
	if addr > 1<<62 || n > maxStructure {
		return Extent{What: what}
	}
	return Extent{Offset: int64(addr), Size: int64(n), What: what}
}

// Freely calls look, which reads some of what will be read again, so that it takes nothing of the
// budget. Errors it leaves to who reads next.
func (s *source) Freely(look func()) {
	left, over := s.Left, s.Over
	look()
	s.Left, s.Over = left, over
}

// maxForetold is the largest number of nodes of one level that announce announces.
const maxForetold = 1 << 20
