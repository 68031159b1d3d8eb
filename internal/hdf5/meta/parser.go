package meta

// parser reads the objects of a file. Everything is read once by address; only the tree
// of names grows with every link.
type parser struct {
	*source
	sb      Superblock
	heaps   heaps
	types   map[uint64]*Datatype // committed datatypes
	objects map[uint64]*object
	links   int      // that may still be added to the tree
	trail   []uint64 // groups that the one being built is inside of

	sharedAt    map[uint16]uint64       // heap of shared messages by message type
	sharedHeaps map[uint64]*fractalHeap // those that were read, by address
}

func newParser(s *source, sb Superblock) *parser {
	return &parser{
		source:      s,
		sb:          sb,
		heaps:       heaps{},
		types:       map[uint64]*Datatype{},
		objects:     map[uint64]*object{},
		links:       int(min(maxLinks, 4096+s.size/16)),
		sharedAt:    map[uint16]uint64{},
		sharedHeaps: map[uint64]*fractalHeap{},
	}
}

// object is what an object header describes, without a name.
type object struct {
	addr       uint64
	attrs      Attrs
	isGroup    bool
	links      []rawLink
	dataset    *Dataset
	typ        *Datatype
	headerSize int64
	version    int
	facts      Object
}

// object reads the object whose header is at addr, or returns what was read before.
func (p *parser) object(addr uint64) (*object, error) {
	if o, ok := p.objects[addr]; ok {
		return o, nil
	}
	h, err := p.readHeader(addr)
	if err != nil {
		return nil, err
	}
	o := &object{addr: addr, headerSize: h.size, version: h.version}
	o.facts = Object{HeaderAt: p.abs(addr), Links: h.linkCount(p.source), Modified: h.modifiedAt(p.source)}
	if err := p.classify(o, h); err != nil {
		return nil, err
	}
	if o.attrs, err = p.attrs(h); err != nil {
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
	table, isOld := h.first(msgSymbolTable)
	info, isNew := h.first(msgLinkInfo)
	typ, hasType := h.first(msgDatatype)
	_, hasSpace := h.first(msgDataspace)
	switch {
	case isOld:
		o.isGroup = true
		o.links, err = p.symbolTable(table)
	case isNew:
		o.isGroup = true
		o.links, err = p.newGroup(h, info)
	case hasType && hasSpace:
		o.dataset, err = p.dataset(h)
	case hasType:
		o.typ, err = p.datatype(typ, "committed datatype")
	default:
		err = p.errorAt(ErrCorrupt, h.addr, "object header", "neither group, dataset nor datatype")
	}
	return err
}

func (p *parser) newGroup(h *header, info message) ([]rawLink, error) {
	links, err := p.compactLinks(h)
	if err != nil {
		return nil, err
	}
	dense, err := p.denseLinks(info)
	return append(links, dense...), err
}
