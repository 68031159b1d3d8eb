package mmapds

import "iter"

// iterBytes is how much Iter asks the disk for at a time.
const iterBytes = 1 << 20

// Iter yields the records of order, which may repeat, one after the other, each as At returns it.
//
//	for record, err := range images.Iter(order) {
//
// Iter knows which records come next. So it asks the disk for them early, prefetches them into the
// CPU's cache, and waits for the disk in system calls instead of page faults. The first error is
// yielded and ends the iteration. Iter allocates nothing for views of a dataset without deleted
// records. order must not change meanwhile.
func (r *Records) Iter(order []int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if r.live != nil {
			r.iterLive(order, yield)
			return
		}
		step := max(1, iterBytes/max(1, r.size))
		m := r.memory()
		distance, part := 0, 0
		if m != nil {
			distance, part = m.prefetchDistance(), m.prefix()
			m.loadFirst(order)
		}
		r.request(order[:min(step, len(order))])
		for from := 0; from < len(order); from += step {
			to := min(from+step, len(order))
			hot := r.request(order[to:min(to+step, len(order))])
			for k := from; k < to; k++ {
				if next := k + distance; m != nil && next < len(order) {
					m.load(order[next], part)
				}
				b, err := r.next(order[k], hot)
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// iterLive is Iter for a dataset with deleted records: it iterates over the places at which the
// records are stored. Records up to the first that does not exist are yielded, as Iter would.
func (r *Records) iterLive(order []int, yield func([]byte, error) bool) {
	stored := *r
	stored.live, stored.n = nil, r.live.stored
	exist := 0
	for exist < len(order) && uint(order[exist]) < uint(r.n) {
		exist++
	}
	places := make([]int, exist)
	for k, i := range order[:exist] {
		places[k] = r.live.At(i)
	}
	for b, err := range stored.Iter(places) {
		if !yield(b, err) || err != nil {
			return
		}
	}
	if exist < len(order) {
		yield(r.At(order[exist]))
	}
}

// memory returns the mapped memory of the records, or nil if they are not mapped.
func (r *Records) memory() *memory {
	if r.rows.mapped == nil {
		return nil
	}
	return r.rows.mapped.memory
}

// request asks the disk for records, and reports whether the whole field is in memory. Records that
// do not exist are skipped: the error belongs to their turn.
func (r *Records) request(rows []int) (hot bool) {
	if r.d.closed.Load() || !r.rows.isLocal() {
		return false
	}
	m := r.memory()
	if m == nil {
		for _, i := range rows {
			if uint(i) < uint(r.n) { // what is wrong is said in its turn
				_ = r.rows.packed.prefetch(i, i+1)
			}
		}
		return false
	}
	m.look()
	if m.full() {
		return true
	}
	var w wants
	for _, i := range rows {
		if uint(i) >= uint(r.n) {
			continue
		}
		if s, at := m.find(i); !s.warm.has(at, at+r.size) {
			m.want(&w, s, at, at+r.size)
		}
	}
	w.send()
	return false
}

// next is At that first waits for the record's pages, unless they are hot.
func (r *Records) next(i int, hot bool) ([]byte, error) {
	m := r.memory()
	if m == nil || uint(i) >= uint(r.n) || r.d.closed.Load() || !r.rows.isLocal() {
		return r.At(i)
	}
	if !hot {
		s, at := m.find(i)
		if err := m.bring(s, at, at+r.size); err != nil {
			return nil, err
		}
	}
	if r.data != nil {
		return r.data[i*r.size : (i+1)*r.size : (i+1)*r.size], nil
	}
	return r.At(i)
}
