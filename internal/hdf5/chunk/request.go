package chunk

import (
	"cmp"
	"context"
	"slices"
)

// request says which records of a dataset go to which places in dst, by rows of chunks. Its jobs are the chunks of
// those rows.
type request struct {
	data *dataset
	ctx  context.Context
	dst  []byte

	wants []want // scratch of addAll
	slots []slot // by row
	rows  []int  // rows[i] is the first slot of group i; one more at the end
}

func (q *request) begin(ctx context.Context, dst []byte) {
	q.ctx, q.dst = ctx, dst
	q.slots, q.rows = q.slots[:0], q.rows[:0]
}

// end closes the last row and returns the number of jobs.
func (q *request) end() int64 {
	n := int64(len(q.rows)) * q.data.grid.columns
	q.rows = append(q.rows, len(q.slots))
	return n
}

// want is one record that Gather returns, and its place in dst.
type want struct{ record, to int }

// slot is n records of a row, from record first of the row on. They go to dst side by side.
type slot struct {
	row      int64
	first, n int64
	to       int64 // place in dst, in records
}

// addRun adds records [a, b), for the beginning of dst.
func (q *request) addRun(a, b int64) { q.addRunTo(a, b, 0) }

// addRunTo adds records [a, b), for the place to in dst, which is counted in records.
func (q *request) addRunTo(a, b, to int64) {
	deep := q.data.grid.deep
	for at := a; at < b; {
		first := at % deep
		n := min(deep-first, b-at)
		q.add(slot{at / deep, first, n, to + at - a})
		at += n
	}
}

// addAll adds records in any order.
func (q *request) addAll(indices []int) {
	q.wants = q.wants[:0]
	for i, x := range indices {
		q.wants = append(q.wants, want{x, i})
	}
	if !slices.IsSortedFunc(q.wants, byRecord) {
		slices.SortFunc(q.wants, byRecord)
	}
	deep := q.data.grid.deep
	for _, w := range q.wants {
		row, first := int64(w.record)/deep, int64(w.record)%deep
		if n := len(q.slots); n > 0 {
			s := &q.slots[n-1]
			if s.row == row && s.first+s.n == first && s.to+s.n == int64(w.to) {
				s.n++
				continue
			}
		}
		q.add(slot{row, first, 1, int64(w.to)})
	}
}

func byRecord(a, b want) int { return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.to, b.to)) }

// add adds a slot. Slots come row by row. rows holds the first slot of each row of chunks: a worker takes a whole
// row.
func (q *request) add(s slot) {
	if n := len(q.slots); n == 0 || q.slots[n-1].row != s.row {
		q.rows = append(q.rows, n)
	}
	q.slots = append(q.slots, s)
}

// place returns the chunk of a job.
func (q *request) place(job int64) int64 {
	n := q.data.grid.columns
	return q.slots[q.rows[job/n]].row*n + job%n
}

// wanted returns the slots that need the chunk of a job, and the column of the chunk.
func (q *request) wanted(job int64) (slots []slot, column int64) {
	n := q.data.grid.columns
	return q.slots[q.rows[job/n]:q.rows[job/n+1]], job % n
}

// all reports whether a slot wants every record of a chunk of whole records.
func (q *request) all(s slot) bool { return q.data.grid.whole && s.n == q.data.grid.deep }

// records returns the memory in dst of a slot.
func (q *request) records(s slot) []byte {
	n := int64(q.data.grid.record)
	return q.dst[s.to*n : (s.to+s.n)*n]
}
