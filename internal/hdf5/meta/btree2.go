package meta

// Types of version 2 B-trees that are read here.
const (
	treeHuge         = 1  // huge objects of a fractal heap by id
	treeLinkName     = 5  // links by the hash of their name
	treeAttrName     = 8  // attributes by the hash of their name
	treeChunkPlain   = 10 // chunks without filters
	treeChunkFilters = 11 // chunks with filters
)

// maxTreeDepth limits the recursion in a damaged tree. No sound version 2 B-tree is deeper.
const maxTreeDepth = 24

// btree2 walks a version 2 B-tree in key order.
type btree2 struct {
	Src      *source
	Kind     uint8
	nodeSize uint64
	recSize  int
	What     string
	Record   func(rec *cursor) error

	countSize int                   // bytes of a record count in child pointers
	totalSize [maxTreeDepth + 1]int // by depth: bytes of the count of all records below
	seen      uint64                // records visited
}

// Walk reads the header at addr and visits every record.
func (t *btree2) Walk(addr uint64) error {
	s := t.Src
	c := s.Read(addr, uint64(4+1+1+4+2+2+1+1+s.OffSize+2+s.LenSize+4), t.What)
	c.Signature("BTHD")
	c.Version(0, 0)
	kind := c.U8()
	t.nodeSize, t.recSize = uint64(c.U32()), int(c.U16())
	depth := int(c.U16())
	c.Skip(2)
	root, n, total := c.Addr(), uint64(c.U16()), c.Length()
	c.Checksum()
	t.check(c, kind, depth)
	if c.Err != nil {
		return c.Err
	}
	s.Note(addr, uint64(len(c.B)), t.What)
	if root == undef {
		return nil
	}
	t.pointerSizes(depth)
	if s.Announced() {
		s.Freely(func() { t.announce(child2{root, n}, depth) })
	}
	if err := t.node(root, n, depth); err != nil {
		return err
	}
	if t.seen != total {
		c.Corrupt("%d records in the tree, header says %d", t.seen, total)
	}
	return c.Err
}

// check refuses trees that no writer makes, before their nodes are read. A node must have room for a record, since the
// widths of counts follow from how many records fit, by a division. The depth limits the recursion of the walk.
func (t *btree2) check(c *cursor, kind uint8, depth int) {
	switch {
	case c.Err != nil:
	case kind != t.Kind:
		c.Corrupt("B-tree of type %d, want %d", kind, t.Kind)
	case depth > maxTreeDepth:
		c.Corrupt("B-tree of depth %d", depth)
	case t.recSize == 0 || t.nodeSize < uint64(nodeFrame+t.recSize):
		c.Corrupt("nodes of %d bytes for records of %d", t.nodeSize, t.recSize)
	}
}

// nodeFrame is the bytes of a node besides records and pointers: signature, version, type
// and checksum.
const nodeFrame = 4 + 1 + 1 + 4

// pointerSizes computes the widths of the counts in child pointers. The file does not store the widths: they follow
// from the largest number of records that a child can have.
func (t *btree2) pointerSizes(depth int) {
	most := (t.nodeSize - nodeFrame) / uint64(t.recSize)
	t.countSize = encSize(most)
	total := most
	for d := 1; d <= depth; d++ {
		ptr := uint64(t.pointerSize(d))
		most = 0
		if t.nodeSize > nodeFrame+ptr {
			most = (t.nodeSize - nodeFrame - ptr) / (uint64(t.recSize) + ptr)
		}
		total = saturate(most+1, total, most)
		t.totalSize[d] = encSize(total)
	}
}

// pointerSize returns the bytes of a child pointer in a node of that depth.
func (t *btree2) pointerSize(depth int) int {
	return t.Src.OffSize + t.countSize + t.totalSize[depth-1]
}

// node visits a node of n records. depth is 0 at the leaves.
func (t *btree2) node(addr, n uint64, depth int) error {
	recs, ptrs, err := t.read(addr, n, depth)
	if err != nil {
		return err
	}
	t.Src.Note(addr, t.nodeSize, t.What)
	return t.visit(recs, ptrs, depth)
}

// read returns the records of a node, and the pointers to its children.
func (t *btree2) read(addr, n uint64, depth int) (recs []byte, ptrs *cursor, err error) {
	size := nodeFrame + n*uint64(t.recSize)
	sig := "BTLF"
	if depth > 0 {
		sig = "BTIN"
		size += (n + 1) * uint64(t.pointerSize(depth))
	}
	c := t.Src.Read(addr, size, t.What)
	c.Signature(sig)
	c.Version(0, 0)
	if kind := c.U8(); c.Err == nil && (kind != t.Kind || size > t.nodeSize) {
		c.Corrupt("node of type %d with %d bytes, want type %d and at most %d", kind, size, t.Kind, t.nodeSize)
	}
	recs = c.Bytes(n * uint64(t.recSize))
	ptrs = &cursor{Src: t.Src, B: c.Bytes(size - nodeFrame - uint64(len(recs))), At: c.At, What: t.What}
	c.Checksum()
	return recs, ptrs, c.Err
}

// visit goes through children and records in turn, which is the order of keys.
func (t *btree2) visit(recs []byte, ptrs *cursor, depth int) error {
	for {
		if depth > 0 {
			if err := t.child(ptrs, depth); err != nil {
				return err
			}
		}
		if len(recs) == 0 {
			return nil
		}
		t.seen++
		rec := &cursor{Src: t.Src, B: recs[:t.recSize], At: ptrs.At, What: t.What}
		if err := t.Record(rec); err != nil {
			return err
		}
		recs = recs[t.recSize:]
	}
}

// child goes down into the next child of an inner node. A version 2 tree stores the number of records of a child beside
// its address (III.A.2), so a child cannot be read without its parent.
func (t *btree2) child(ptrs *cursor, depth int) error {
	kid, err := t.pointer(ptrs, depth)
	if err != nil {
		return err
	}
	return t.node(kid.addr, kid.n, depth-1)
}

// pointer reads the next pointer of a node of that depth.
func (t *btree2) pointer(ptrs *cursor, depth int) (child2, error) {
	kid := child2{addr: ptrs.Addr(), n: ptrs.Uint(t.countSize)}
	ptrs.Uint(t.totalSize[depth-1])
	return kid, ptrs.Err
}

// child2 is a pointer to a node of a version 2 B-tree, and the number of records in that node.
type child2 struct{ addr, n uint64 }

// announce tells the source which nodes come next, level by level, like announce of btree1.
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
			list[i] = extentAt(k.addr, t.nodeSize, t.What)
		}
		t.Src.Announce(list)
		nodes = below
	}
}
