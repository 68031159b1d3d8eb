package mmapds

import (
	"fmt"
	"sync/atomic"
)

// Records is one field of a dataset as a list, for code that asks for records one at a time: in the
// usual case At computes an address and nothing else. Its methods may be called from any goroutine.
type Records struct {
	d    *Dataset
	rows *reader
	data []byte  // the memory of all records if At may return parts of it, else nil
	warm pageSet // of data
	at   *walk
	size int
	n    int
	live *live // nil if records are where their numbers say
}

// Records returns a field of records of one length as a list.
func (d *Dataset) Records(field string) (*Records, error) {
	rows, err := d.rows(field)
	if err != nil {
		return nil, err
	}
	r := &Records{d: d, rows: rows, size: rows.column.size, n: d.Len(), live: d.live, at: new(walk)}
	if m := rows.mapped; m != nil && d.live == nil && len(m.memory.segments) == 1 &&
		rows.checks == nil && rows.pager == nil {
		r.data, r.warm = m.memory.segments[0].data, m.memory.segments[0].warm
	}
	return r, nil
}

// Len returns the number of records.
func (r *Records) Len() int { return r.n }

// At returns the bytes of record i, which must not be changed. They equal Slice(field, i,
// i+1): a view of the file that is valid until Close, or new memory if Contiguous returns false,
// checked if WithVerify asks for it. A record that does not exist is an error.
//
// It allocates nothing for views. A record that is not in memory is read, by its size; in their order, many are read
// together. Others are read sooner by Prefetch, or together by Gather. With small records in a known order, Iter is
// two to four times as fast.
func (r *Records) At(i int) ([]byte, error) {
	if at := i * r.size; uint(i) < uint(r.n) && r.data != nil && r.warm.has(at, at+r.size) && !r.d.closed.Load() {
		return r.data[at : at+r.size : at+r.size], nil
	}
	return r.slow(i)
}

// walk detects whether At is asked for records in their order. Its atomics are updated one by one
// without a lock: a lost update only makes a read-ahead larger, smaller or late.
type walk struct {
	next   atomic.Int64 // the record that would follow
	window atomic.Int64 // up to which byte records were brought in ahead
	times  atomic.Int64 // how many windows followed each other, which decides on the size of the next
}

// walkBytes limits how much is brought in for records that are read in their order, with as much
// again under way. The first windows are smaller, since two records may follow each other by
// chance.
const walkBytes = 1 << 20

// bring brings record i, which exists, into memory. If i follows the records before, it also brings
// in the records that are likely to come next.
func (r *Records) bring(i int) error {
	m := r.rows.mapped.memory
	s, from, before := &m.segments[0], i*r.size, int(r.at.window.Load())
	follows := r.at.next.Swap(int64(i)+1) == int64(i)
	if follows && from+r.size <= before {
		return nil
	}
	if !follows && (from > before || from+r.size <= before) || r.size >= walkBytes {
		r.at.window.Store(0)
		r.at.times.Store(0)
		if err := m.start(i, i+1); err != nil {
			return err
		}
		return m.bring(s, from, from+r.size)
	}
	n := int(min(walkBytes, int64(r.size)<<min(20, r.at.times.Add(1))))
	end := min(from+n, len(s.data))
	r.at.window.Store(int64(end))
	willNeed(s.data[from:min(end+n, len(s.data))])
	return m.bring(s, from, end)
}

// slow is At for records that need more than an address, and for errors. It is separate so that At
// stays small enough to be cheap for warm records.
func (r *Records) slow(i int) ([]byte, error) {
	if r.d.closed.Load() {
		return nil, ErrClosed
	}
	if uint(i) >= uint(r.n) {
		return nil, fmt.Errorf("mmapds: field %q: record %d of %d does not exist", r.rows.column.spec.Name, i, r.n)
	}
	if r.live != nil {
		i = r.live.At(i)
	}
	if r.data != nil {
		return r.data[i*r.size : (i+1)*r.size : (i+1)*r.size], r.bring(i)
	}
	v, err := r.rows.slice(i, i+1)
	return v.Bytes(), err
}
