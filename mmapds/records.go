package mmapds

import "fmt"

// Records is one field of a dataset as a list, for code that asks for records one at a time: At
// does no more than compute where a record is. Its methods may be called from any goroutine.
type Records struct {
	d    *Dataset
	rows *reader
	data []byte // of all records; nil if At has to do more than to look there
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
	r := &Records{d: d, rows: rows, size: rows.column.size, n: d.Len(), live: d.live}
	if m := rows.mapped; m != nil && d.live == nil && len(m.memory.segments) == 1 &&
		rows.checks == nil && rows.pager == nil {
		r.data = m.memory.segments[0].data
	}
	return r, nil
}

// Len returns the number of records.
func (r *Records) Len() int { return r.n }

// At returns the bytes of record i, which must not be changed. They are those of Slice(field, i,
// i+1): a view of the file that is valid until Close, or new memory if Contiguous returns false,
// checked if WithVerify asks for it. A record that does not exist is an error.
//
// It allocates nothing for views. Cold memory is read from disk when it is touched: call
// Prefetch ahead, or Gather, where that matters. With small records in a
// known order, Iter is two to four times as fast.
func (r *Records) At(i int) ([]byte, error) {
	if uint(i) < uint(r.n) && r.data != nil && !r.d.closed.Load() {
		at := i * r.size
		return r.data[at : at+r.size : at+r.size], nil
	}
	return r.slow(i)
}

// slow is At where there is more to do, or something is wrong.
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
	v, err := r.rows.slice(i, i+1)
	return v.Bytes(), err
}
