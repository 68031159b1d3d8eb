package meta

import "math/bits"

// Types of version 2 B-trees that are read here.
const (
	btreeHuge         = 1  // huge objects of a fractal heap by id
	btreeLinkName     = 5  // links by the hash of their name
	btreeAttrName     = 8  // attributes by the hash of their name
	btreeChunkPlain   = 10 // chunks without filters
	btreeChunkFilters = 11 // chunks with filters
)

// maxTreeDepth is more than any version 2 B-tree needs.
const maxTreeDepth = 24

// btree2 walks a version 2 B-tree in key order.
type btree2 struct {
	src      *source
	kind     uint8
	nodeSize uint64
	recSize  int
	what     string
	record   func(rec *cursor) error

	countSize int                   // bytes of a record count in child pointers
	totalSize [maxTreeDepth + 1]int // by depth: bytes of the count of all records below
	seen      uint64                // records visited
}

// walk reads the header at addr and visits every record.
func (t *btree2) walk(addr uint64) error {
	s := t.src
	c := s.read(addr, uint64(4+1+1+4+2+2+1+1+s.offSize+2+s.lenSize+4), t.what)
	c.signature("BTHD")
	c.version(0, 0)
	kind := c.u8()
	t.nodeSize, t.recSize = uint64(c.u32()), int(c.u16())
	depth := int(c.u16())
	c.skip(2)
	root, n, total := c.addr(), uint64(c.u16()), c.length()
	c.checksum()
	t.check(c, kind, depth)
	if c.err != nil {
		return c.err
	}
	s.note(addr, uint64(len(c.b)), t.what)
	if root == undef {
		return nil
	}
	t.pointerSizes(depth)
	if s.announced() {
		s.freely(func() { t.announce(child2{root, n}, depth) })
	}
	if err := t.node(root, n, depth); err != nil {
		return err
	}
	if t.seen != total {
		c.corrupt("%d records in the tree, header says %d", t.seen, total)
	}
	return c.err
}

func (t *btree2) check(c *cursor, kind uint8, depth int) {
	switch {
	case c.err != nil:
	case kind != t.kind:
		c.corrupt("B-tree of type %d, want %d", kind, t.kind)
	case depth > maxTreeDepth:
		c.corrupt("B-tree of depth %d", depth)
	case t.recSize == 0 || t.nodeSize < uint64(nodeFrame+t.recSize):
		c.corrupt("nodes of %d bytes for records of %d", t.nodeSize, t.recSize)
	}
}

// nodeFrame is the bytes of a node besides records and pointers: signature, version, type
// and checksum.
const nodeFrame = 4 + 1 + 1 + 4

// pointerSizes computes how wide the counts in child pointers are: as wide as the most
// records that could be there need.
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

// saturate returns a*b+c, or the largest number.
func saturate(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	sum, carry := bits.Add64(lo, c, 0)
	if hi != 0 || carry != 0 {
		return 1<<64 - 1
	}
	return sum
}

// pointerSize returns the bytes of a child pointer in a node of that depth.
func (t *btree2) pointerSize(depth int) int {
	return t.src.offSize + t.countSize + t.totalSize[depth-1]
}

// node visits a node of n records; depth falls to 0 at the leaves.
func (t *btree2) node(addr, n uint64, depth int) error {
	recs, ptrs, err := t.read(addr, n, depth)
	if err != nil {
		return err
	}
	t.src.note(addr, t.nodeSize, t.what)
	return t.visit(recs, ptrs, depth)
}

// read returns the records of a node, and its pointers.
func (t *btree2) read(addr, n uint64, depth int) (recs []byte, ptrs *cursor, err error) {
	size := nodeFrame + n*uint64(t.recSize)
	sig := "BTLF"
	if depth > 0 {
		sig = "BTIN"
		size += (n + 1) * uint64(t.pointerSize(depth))
	}
	c := t.src.read(addr, size, t.what)
	c.signature(sig)
	c.version(0, 0)
	if kind := c.u8(); c.err == nil && (kind != t.kind || size > t.nodeSize) {
		c.corrupt("node of type %d with %d bytes, want type %d and at most %d", kind, size, t.kind, t.nodeSize)
	}
	recs = c.bytes(n * uint64(t.recSize))
	ptrs = &cursor{src: t.src, b: c.bytes(size - nodeFrame - uint64(len(recs))), at: c.at, what: t.what}
	c.checksum()
	return recs, ptrs, c.err
}

// visit goes through records and children in turn.
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
		rec := &cursor{src: t.src, b: recs[:t.recSize], at: ptrs.at, what: t.what}
		if err := t.record(rec); err != nil {
			return err
		}
		recs = recs[t.recSize:]
	}
}

func (t *btree2) child(ptrs *cursor, depth int) error {
	kid, err := t.pointer(ptrs, depth)
	if err != nil {
		return err
	}
	return t.node(kid.addr, kid.n, depth-1)
}

// pointer reads the next of the pointers of a node of that depth.
func (t *btree2) pointer(ptrs *cursor, depth int) (child2, error) {
	kid := child2{addr: ptrs.addr(), n: ptrs.uint(t.countSize)}
	ptrs.uint(t.totalSize[depth-1])
	return kid, ptrs.err
}
