package meta

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

// btree1Node is a node: its children, each behind its key.
type btree1Node struct {
	level, count int
	body         *cursor
}

// size returns how many bytes a node takes.
func (t *btree1) size() uint64 {
	return uint64(8 + 2*t.src.offSize + t.maxKids*(t.keySize+t.src.offSize) + t.keySize)
}

// node reads the node at addr. level is the level it must have, -1 for any.
func (t *btree1) node(addr uint64, level int) (n btree1Node, err error) {
	s := t.src
	c := s.read(addr, uint64(8+2*s.offSize), t.what)
	c.signature("TREE")
	kind := c.u8()
	n.level, n.count = int(c.u8()), int(c.u16())
	if c.err == nil && (kind != t.kind || level >= 0 && n.level != level) {
		c.corrupt("node of type %d and level %d, want type %d and level %d", kind, n.level, t.kind, level)
	}
	if c.err != nil {
		return n, c.err
	}
	n.body = s.read(addr+uint64(len(c.b)), uint64(n.count*(t.keySize+s.offSize)), t.what)
	n.body.at = c.at
	return n, nil
}

// walk visits the node at addr and what is below it. level is the level it must have, -1
// for the root; it falls by one from node to node, so a cycle is an error.
func (t *btree1) walk(addr uint64, level int) error {
	if level < 0 && t.src.announced() {
		t.src.freely(func() { t.announce(addr) })
	}
	n, err := t.node(addr, level)
	if err != nil {
		return err
	}
	t.src.note(addr, t.size(), t.what)
	for i := 0; i < n.count && n.body.err == nil; i++ {
		key := &cursor{src: t.src, b: n.body.bytes(uint64(t.keySize)), at: n.body.at, what: t.what}
		if err := t.child(key, n.body.addr(), n.level); err != nil {
			return err
		}
	}
	return n.body.err
}

func (t *btree1) child(key *cursor, addr uint64, level int) error {
	if level > 0 {
		return t.walk(addr, level-1)
	}
	return t.leaf(key, addr)
}
