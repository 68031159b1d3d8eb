package meta

// rawLink is an entry of a group before its object is read.
type rawLink struct {
	name   string
	kind   LinkKind
	addr   uint64 // Hard
	target string // Soft, External
	file   string // External
	order  int64  // order of creation, if the group tracks it
}

// symbolTable reads the links of an old-format group: a B-tree over symbol table nodes
// whose names are in a local heap.
func (p *messages) symbolTable(m message, sb *Superblock) ([]rawLink, error) {
	c := m.Cursor(p.src, "symbol table message")
	root, heapAddr := c.Addr(), c.Addr()
	if c.Err != nil {
		return nil, c.Err
	}
	heap, err := readLocalHeap(p.src, heapAddr)
	if err != nil {
		return nil, err
	}
	var links []rawLink
	t := btree1{Src: p.src, Kind: treeGroup, KeySize: p.src.LenSize, MaxKids: 2 * int(sb.groupK),
		What: "group B-root node"}
	t.Leaf = func(_ *cursor, child uint64) error {
		links, err = p.symbolNode(child, uint64(sb.leafK), heap, links)
		return err
	}
	return links, t.Walk(root, -1)
}

// symbolNode appends the entries of one "SNOD" node.
func (p *messages) symbolNode(addr, leafK uint64, heap *localHeap, links []rawLink) ([]rawLink, error) {
	entry := uint64(p.src.LenSize + p.src.OffSize + 24)
	c := p.src.Read(addr, 8, "symbol table node")
	c.Signature("SNOD")
	c.Version(1, 1)
	c.Skip(1)
	n := uint64(c.U16())
	if c.Err != nil {
		return nil, c.Err
	}
	p.src.Note(addr, 8+2*leafK*entry, "symbol table node")
	c = p.src.Read(addr+8, n*entry, "symbol table node")
	for i := uint64(0); i < n && c.Err == nil; i++ {
		l, err := symbolEntry(c, heap)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, c.Err
}

// symbolEntry reads a symbol table entry (III.C): a name in the local heap, and the address of the object header. An
// entry with cache type 2 is a soft link, whose target is in the heap, and its address means nothing. Cache type 1
// repeats fields of the header, and is not used.
func symbolEntry(c *cursor, heap *localHeap) (l rawLink, err error) {
	nameOff := c.Length()
	l.addr = c.Addr()
	cache := c.U32()
	c.Skip(4)
	valueOff := uint64(c.U32())
	c.Skip(12)
	if c.Err != nil {
		return l, c.Err
	}
	if l.name, err = heap.Name(nameOff); err != nil {
		return l, err
	}
	if cache == 2 {
		l.kind = Soft
		l.target, err = heap.Name(valueOff)
	}
	return l, err
}
