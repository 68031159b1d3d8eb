package chunk

import "sync"

// span is rows of chunks [from, to).
type span struct{ from, to int64 }

// readahead finds calls that go on in order.
type readahead struct {
	mu  sync.Mutex
	row span // what was read last, and ahead
}

// foresee has helpers that have nothing else to do read ahead, into the cache, where a request goes
// on in order with fewer chunks than there are workers, and no other call is under way: records
// that are read one by one then are inflated by all workers, too. It ends with the call.
// It returns how many extra jobs there are, and the row that they begin with.
func (a *readahead) foresee(q *request, jobs int64, alone bool) (after, extra int64) {
	first, last := q.slots[0].row, q.slots[len(q.slots)-1].row
	a.mu.Lock()
	defer a.mu.Unlock()
	if first >= a.row.from && last < a.row.to {
		return 0, 0 // at hand
	}
	after = last + 1
	if alone && first == a.row.to && first > 0 && q.data.foreseeable() {
		extra = max(0, min(int64(q.data.pool.Workers())-jobs, q.data.grid.rows-after))
	}
	a.row = span{first, after + extra}
	return after, extra
}
