package chunk

import "sync"

// span is the rows of chunks [from, to).
type span struct{ from, to int64 }

// readahead recognizes calls that read records in order.
type readahead struct {
	mu  sync.Mutex
	row span // rows that were read last, and ahead
}

// foresee decides how many chunks idle helpers read ahead into the cache. They read ahead if a request goes on where
// the last request ended, has fewer chunks than there are workers, and no other call is running: records that are read
// one by one are then also decompressed by all workers. Reading ahead ends with the call. foresee returns how many
// extra jobs there are, and the row that they begin with.
func (a *readahead) foresee(q *request, jobs int64, alone bool) (after, extra int64) {
	first, last := q.slots[0].row, q.slots[len(q.slots)-1].row
	a.mu.Lock()
	defer a.mu.Unlock()
	if first >= a.row.from && last < a.row.to {
		return 0, 0 // these rows are in the cache
	}
	after = last + 1
	if alone && first == a.row.to && first > 0 && q.data.foreseeable() {
		extra = max(0, min(int64(q.data.pool.Workers())-jobs, q.data.grid.rows-after))
	}
	a.row = span{first, after + extra}
	return after, extra
}
