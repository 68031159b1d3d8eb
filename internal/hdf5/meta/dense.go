package meta

// denseObjects visits the objects that a name index refers to: links or attributes. idOf takes the heap id from an
// index record, and whether the object is in the heap of shared attributes instead of the heap at heapAddr.
func (p *messages) denseObjects(heapAddr, root uint64, kind uint8, idOf func(*cursor) (id []byte, shared bool),
	visit func(*cursor) error) error {
	own, err := readFractalHeap(p.src, heapAddr)
	if err != nil {
		return err
	}
	t := btree2{Src: p.src, Kind: kind, What: "name index"}
	t.Record = func(rec *cursor) error {
		h := own
		id, shared := idOf(rec)
		if rec.Err != nil {
			return rec.Err
		}
		if shared {
			var err error
			if h, err = p.sharedHeap(msgAttribute); err != nil {
				return err
			}
		}
		obj, err := h.Object(id)
		if err != nil {
			return err
		}
		return visit(obj)
	}
	return t.Walk(root)
}
