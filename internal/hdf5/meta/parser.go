package meta

// parser reads the objects of a file. Each object is read once, by its address; only the tree of names grows with every
// link.
type parser struct {
	src     *source
	sb      Superblock
	shared  messages
	objects map[uint64]*object
	links   int      // how many links may still be added to the tree
	trail   []uint64 // addresses of the groups that contain the one being built
}

// newParser returns a parser of the objects of a file. The number of links is limited by the size of the file, to one
// for 16 bytes, so that a hostile file takes no memory out of proportion to its size.
func newParser(s *source, sb Superblock) *parser {
	return &parser{
		src:     s,
		sb:      sb,
		objects: map[uint64]*object{},
		links:   int(min(maxLinks, 4096+s.Size/16)),
		shared:  newMessages(s),
	}
}

// object is the content of an object header, without a name.
type object struct {
	addr       uint64
	attrs      Attrs
	isGroup    bool
	links      []rawLink
	tracked    bool // links have the order in which they were created
	dataset    *Dataset
	typ        *Datatype
	headerSize int64
	version    int
	facts      Object
}

// object reads the object whose header is at addr, or returns the object that was read before.
func (p *parser) object(addr uint64) (*object, error) {
	if o, ok := p.objects[addr]; ok {
		return o, nil
	}
	h, err := readHeader(p.src, addr)
	if err != nil {
		return nil, err
	}
	o := &object{addr: addr, headerSize: h.Size, version: h.Version}
	o.facts = Object{HeaderAt: p.src.Abs(addr), Links: h.LinkCount(p.src), Modified: h.ModifiedAt(p.src)}
	if err := p.classify(o, h); err != nil {
		return nil, err
	}
	if o.attrs, err = p.shared.attrs(h); err != nil {
		return nil, err
	}
	if o.dataset != nil {
		o.dataset.Attrs = o.attrs
	}
	p.objects[addr] = o
	return o, nil
}

// classify distinguishes group, dataset and committed datatype as libhdf5 does: by the
// messages in the header.
func (p *parser) classify(o *object, h *header) (err error) {
	table, isOld := h.First(msgSymbolTable)
	info, isNew := h.First(msgLinkInfo)
	typ, hasType := h.First(msgDatatype)
	_, hasSpace := h.First(msgDataspace)
	switch {
	case isOld:
		o.isGroup = true
		o.links, err = p.shared.symbolTable(table, &p.sb)
	case isNew:
		o.isGroup = true
		o.links, o.tracked, err = p.newGroup(h, info)
	case hasType && hasSpace:
		o.dataset, err = p.shared.dataset(h)
	case hasType:
		o.typ, err = p.shared.datatype(typ, "committed datatype")
	default:
		err = p.src.ErrorAt(ErrCorrupt, h.Addr, "object header", "neither group, dataset nor datatype")
	}
	return err
}

func (p *parser) newGroup(h *header, info message) (links []rawLink, tracked bool, err error) {
	if links, err = p.shared.compactLinks(h); err != nil {
		return nil, false, err
	}
	dense, tracked, err := p.shared.denseLinks(info)
	return append(links, dense...), tracked, err
}
