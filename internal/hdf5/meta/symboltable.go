package meta

// rawLink is an entry of a group before the object behind it is read.
type rawLink struct {
	name   string
	kind   LinkKind
	addr   uint64 // Hard
	target string // Soft, External
	file   string // External
}

// symbolTable reads the links of an old-format group: a B-tree over symbol table nodes
// whose names are in a local heap.
func (p *parser) symbolTable(m message) ([]rawLink, error) {
	c := p.cursor(m, "symbol table message")
	tree, heapAddr := c.addr(), c.addr()
	if c.err != nil {
		return nil, c.err
	}
	heap, err := p.readLocalHeap(heapAddr)
	if err != nil {
		return nil, err
	}
	var links []rawLink
	t := btree1{src: p.source, kind: btreeGroup, keySize: p.lenSize, maxKids: 2 * int(p.sb.groupK), what: "group B-tree node"}
	t.leaf = func(_ *cursor, child uint64) error {
		links, err = p.symbolNode(child, heap, links)
		return err
	}
	return links, t.walk(tree, -1)
}

// symbolNode appends the entries of one "SNOD".
func (p *parser) symbolNode(addr uint64, heap *localHeap, links []rawLink) ([]rawLink, error) {
	entry := uint64(p.lenSize + p.offSize + 24)
	c := p.read(addr, 8, "symbol table node")
	c.signature("SNOD")
	c.version(1, 1)
	c.skip(1)
	n := uint64(c.u16())
	if c.err != nil {
		return nil, c.err
	}
	p.note(addr, 8+2*uint64(p.sb.leafK)*entry, "symbol table node")
	c = p.read(addr+8, n*entry, "symbol table node")
	for i := uint64(0); i < n && c.err == nil; i++ {
		l, err := symbolEntry(c, heap)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, c.err
}

func symbolEntry(c *cursor, heap *localHeap) (l rawLink, err error) {
	nameOff := c.length()
	l.addr = c.addr()
	cache := c.u32()
	c.skip(4)
	valueOff := uint64(c.u32())
	c.skip(12)
	if c.err != nil {
		return l, c.err
	}
	if l.name, err = heap.name(nameOff); err != nil {
		return l, err
	}
	if cache == 2 {
		l.kind = Soft
		l.target, err = heap.name(valueOff)
	}
	return l, err
}
