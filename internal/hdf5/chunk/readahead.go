package chunk

import "context"

// span is rows of chunks [from, to).
type span struct{ from, to int64 }

// foresee has helpers that have nothing else to do read ahead, into the cache, where a call goes
// on in order with fewer chunks than there are workers, and no other call is under way: records
// that are read one by one then are inflated by all workers, too. It ends with the call.
func (r *Reader) foresee(c *call, alone bool) {
	first, last := c.slots[0].row, c.slots[len(c.slots)-1].row
	r.mu.Lock()
	defer r.mu.Unlock()
	if first >= r.row.from && last < r.row.to {
		return // at hand
	}
	if alone && first == r.row.to && first > 0 && r.foreseeable() {
		c.after = last + 1
		c.extra = max(0, min(int64(r.pool.Workers())-c.jobs, r.grid.rows-c.after))
	}
	r.row = span{first, last + 1 + c.extra}
}

// foreseeable reports whether chunks can be read ahead with a gain. Where several chunks have a part
// of a record, all workers have something to do anyway.
func (r *Reader) foreseeable() bool {
	return !r.exact && r.grid.columns == 1 && (len(r.filter.steps) > 0 || r.outside != nil) && r.grid.size > aloneBytes
}

// readAhead puts a chunk into the cache. Its error is for the call that wants it.
func (r *Reader) readAhead(w *worker, place int64) {
	if r.outside != nil {
		e := r.cache.take(place)
		defer r.cache.give(e)
		_ = r.fillArray(context.Background(), w, e)
		return
	}
	s, ok := r.find(place)
	if !ok || r.filter.plain(s.mask) || !r.filter.possible(s.size) {
		return
	}
	e := r.cache.take(place)
	defer r.cache.give(e)
	_ = r.fillEntry(w, e, s)
}
