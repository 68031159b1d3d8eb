package meta

// Announcer is an interface that the io.ReaderAt of a file may implement. Before the package
// reads a structure that has many parts, it calls Announce with the parts whose place it knows, so
// that a source with slow reads can make them in parallel. The parts may be wrong, as the file may
// be, but they are inside of the file, and are no more than may be read.
type Announcer interface {
	Announce(parts []Extent)
}

// announced reports whether the reader implements Announcer.
func (s *source) announced() bool {
	_, ok := s.r.(Announcer)
	return ok
}

// announce reports where structures are that will be read next.
func (s *source) announce(list []Extent) {
	to, ok := s.r.(Announcer)
	if !ok {
		return
	}
	left := s.left
	var parts []Extent
	for _, e := range list {
		addr := uint64(e.Offset)
		if addr >= uint64(s.size-s.base) {
			continue
		}
		e.Offset, e.Size = s.abs(addr), min(e.Size, s.size-s.abs(addr))
		if left -= e.Size; e.Size <= 0 || left < 0 {
			continue
		}
		parts = append(parts, e)
	}
	if len(parts) > 0 {
		to.Announce(parts)
	}
}

// at returns n bytes at an address for announce; of more than can be, none.
func at(addr, n uint64, what string) Extent {
	if addr > 1<<62 || n > maxStructure {
		return Extent{What: what}
	}
	return Extent{Offset: int64(addr), Size: int64(n), What: what}
}

// freely calls look, which reads some of what will be read again, so that it takes nothing of the
// budget. Errors it leaves to who reads next.
func (s *source) freely(look func()) {
	left, over := s.left, s.over
	look()
	s.left, s.over = left, over
}

// maxForetold is the largest number of nodes of one level that announce announces.
const maxForetold = 1 << 20

// announce reads the nodes above the leaves level by level, and announces where each level is.
func (t *btree1) announce(root uint64) {
	level, nodes := -1, []uint64{root}
	for level != 0 && len(nodes) > 0 {
		var below []uint64
		for _, addr := range nodes {
			n, err := t.node(addr, level)
			if err != nil {
				return
			}
			for range n.count {
				n.body.skip(t.keySize)
				below = append(below, n.body.addr())
			}
			if n.body.err != nil || n.level == 0 || len(below) > maxForetold {
				return
			}
			level = n.level
		}
		t.src.announce(t.extents(below))
		level, nodes = level-1, below
	}
}

func (t *btree1) extents(nodes []uint64) []Extent {
	list := make([]Extent, len(nodes))
	for i, addr := range nodes {
		list[i] = at(addr, t.size(), t.what)
	}
	return list
}

// child2 is a pointer to a node of a version 2 B-tree, with how many records that has.
type child2 struct{ addr, n uint64 }

// announce is that of btree1.
func (t *btree2) announce(root child2, depth int) {
	for nodes := []child2{root}; depth > 0; depth-- {
		var below []child2
		for _, k := range nodes {
			recs, ptrs, err := t.read(k.addr, k.n, depth)
			if err != nil {
				return
			}
			for range len(recs)/t.recSize + 1 {
				kid, err := t.pointer(ptrs, depth)
				if err != nil {
					return
				}
				below = append(below, kid)
			}
			if len(below) > maxForetold {
				return
			}
		}
		list := make([]Extent, len(below))
		for i, k := range below {
			list[i] = at(k.addr, t.nodeSize, t.what)
		}
		t.src.announce(list)
		nodes = below
	}
}

// announce reports where the blocks of an extensible array are, which c, in the index block, points
// to; first is the number of the first element that is not there.
func (a *extArray) announce(c cursor, first uint64) {
	all, direct := a.superBlocks()
	var list []Extent
	var supers []super
	for s := 0; s < all && first < a.most && c.err == nil; s++ {
		blocks, elems := a.shape(s)
		if s >= direct {
			supers = append(supers, super{c.addr(), s, first})
			list = append(list, at(supers[len(supers)-1].addr, a.superSize(s), "extensible array super block"))
			first = saturate(blocks, elems, first)
			continue
		}
		for range blocks {
			list = append(list, a.blockAt(c.addr(), elems))
			first += elems
		}
	}
	a.source.announce(list)
	list = list[:0]
	for _, s := range supers {
		_, ptrs, err := a.readSuper(s)
		for err == nil && ptrs != nil && ptrs.pos < len(ptrs.b) {
			_, elems := a.shape(s.number)
			list = append(list, a.blockAt(ptrs.addr(), elems))
		}
	}
	a.source.announce(list)
}

// blockAt returns where a data block of n elements is, pages included.
func (a *extArray) blockAt(addr, n uint64) Extent {
	bytes, ok := product(n, uint64(a.elem))
	if !ok {
		return Extent{}
	}
	return at(addr, uint64(a.blockHead())+bytes+4*(1+n/a.perPage), "extensible array block")
}
