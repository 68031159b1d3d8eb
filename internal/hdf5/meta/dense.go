package meta

// denseObjects visits the objects that a name index refers to: links or attributes. idOf
// takes the heap id out of an index record, and whether the object is in the heap of shared
// attributes, not in that at heapAddr.
func (p *parser) denseObjects(heapAddr, tree uint64, kind uint8, idOf func(*cursor) (id []byte, shared bool), visit func(*cursor) error) error {
	own, err := p.readFractalHeap(heapAddr)
	if err != nil {
		return err
	}
	t := btree2{src: p.source, kind: kind, what: "name index"}
	t.record = func(rec *cursor) error {
		h := own
		id, shared := idOf(rec)
		if rec.err != nil {
			return rec.err
		}
		if shared {
			var err error
			if h, err = p.sharedHeap(msgAttribute); err != nil {
				return err
			}
		}
		obj, err := h.object(id)
		if err != nil {
			return err
		}
		return visit(obj)
	}
	return t.walk(tree)
}
