package meta

// Types of version 1 B-trees.
const (
	treeGroup = 0
	treeChunk = 1
)

// btree1 walks a version 1 B-tree in key order.
type btree1 struct {
	Src     *source
	Kind    uint8
	KeySize int
	MaxKids int    // children of a full node, for the extent only
	What    string // for messages
	Leaf    func(key *cursor, child uint64) error
}

// btree1Node is a node of a version 1 B-tree: its children, each after its key.
type btree1Node struct {
	level, count int
	body         *cursor
}

// size returns how many bytes a node takes.
func (t *btree1) size() uint64 {
	return uint64(8 + 2*t.Src.OffSize + t.MaxKids*(t.KeySize+t.Src.OffSize) + t.KeySize)
}

// node reads the node at addr. level is the level that the node must have, -1 for any.
func (t *btree1) node(addr uint64, level int) (n btree1Node, err error) {
	s := t.Src
	c := s.Read(addr, uint64(8+2*s.OffSize), t.What)
	c.Signature("TREE")
	kind := c.U8()
	n.level, n.count = int(c.U8()), int(c.U16())
	if c.Err == nil && (kind != t.Kind || level >= 0 && n.level != level) {
		c.Corrupt("node of type %d and level %d, want type %d and level %d", kind, n.level, t.Kind, level)
	}
	if c.Err != nil {
		return n, c.Err
	}
	n.body = s.Read(addr+uint64(len(c.B)), uint64(n.count*(t.KeySize+s.OffSize)), t.What)
	n.body.At = c.At
	return n, nil
}

// Walk visits the node at addr and all nodes below it. level is the level that the node must have, -1 for the root. The
// level falls by one with each step down, so a node that leads back to an ancestor has the wrong level, and the walk
// ends.
func (t *btree1) Walk(addr uint64, level int) error {
	if level < 0 && t.Src.Announced() {
		t.Src.Freely(func() { t.announce(addr) })
	}
	n, err := t.node(addr, level)
	if err != nil {
		return err
	}
	t.Src.Note(addr, t.size(), t.What)
	for i := 0; i < n.count && n.body.Err == nil; i++ {
		key := &cursor{Src: t.Src, B: n.body.Bytes(uint64(t.KeySize)), At: n.body.At, What: t.What}
		if err := t.child(key, n.body.Addr(), n.level); err != nil {
			return err
		}
	}
	return n.body.Err
}

// child goes down a level, or passes an entry of level 0 to Leaf.
func (t *btree1) child(key *cursor, addr uint64, level int) error {
	if level > 0 {
		return t.Walk(addr, level-1)
	}
	return t.Leaf(key, addr)
}

// announce reads the nodes above the leaves level by level, and announces the places of each level before it is read: a
// tree of three levels then costs three round trips, and not one for each node.
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
				n.body.Skip(t.KeySize)
				below = append(below, n.body.Addr())
			}
			if n.body.Err != nil || n.level == 0 || len(below) > maxForetold {
				return
			}
			level = n.level
		}
		t.Src.Announce(t.extents(below))
		level, nodes = level-1, below
	}
}

// extents returns the places of nodes in the file. All nodes of a version 1 tree have one size, so they can be
// announced before any node is parsed.
func (t *btree1) extents(nodes []uint64) []Extent {
	list := make([]Extent, len(nodes))
	for i, addr := range nodes {
		list[i] = extentAt(addr, t.size(), t.What)
	}
	return list
}
