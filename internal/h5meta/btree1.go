package h5meta

// Types of version 1 B-trees.
const (
	btreeGroup = 0
	btreeChunk = 1
)

// btree1 walks a version 1 B-tree in key order.
type btree1 struct {
	src     *source
	kind    uint8
	keySize int
	maxKids int    // children of a full node, for the extent only
	what    string // for messages
	leaf    func(key *cursor, child uint64) error
}

// walk visits the node at addr and what is below it. level is the level it must have, -1
// for the root; it falls by one from node to node, so a cycle is an error.
func (t *btree1) walk(addr uint64, level int) error {
	s := t.src
	c := s.read(addr, uint64(8+2*s.offSize), t.what)
	c.signature("TREE")
	kind, lvl, n := c.u8(), int(c.u8()), int(c.u16())
	if c.err == nil && (kind != t.kind || level >= 0 && lvl != level) {
		c.corrupt("node of type %d and level %d, want type %d and level %d", kind, lvl, t.kind, level)
	}
	if c.err != nil {
		return c.err
	}
	head := uint64(len(c.b))
	s.note(addr, head+uint64(t.maxKids*(t.keySize+s.offSize)+t.keySize), t.what)
	body := s.read(addr+head, uint64(n*(t.keySize+s.offSize)), t.what)
	body.at = c.at
	for i := 0; i < n && body.err == nil; i++ {
		key := &cursor{src: s, b: body.bytes(uint64(t.keySize)), at: c.at, what: t.what}
		if err := t.child(key, body.addr(), lvl); err != nil {
			return err
		}
	}
	return body.err
}

func (t *btree1) child(key *cursor, addr uint64, level int) error {
	if level > 0 {
		return t.walk(addr, level-1)
	}
	return t.leaf(key, addr)
}
