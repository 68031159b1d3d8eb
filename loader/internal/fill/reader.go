package fill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/tensor"
)

// reader reads records of a Source for one goroutine and measures the reads.
type reader struct {
	plan     *Plan
	guard    guard
	watch    stopwatch
	progress progress
	single   single
	ends     [2]int64 // offsets of a ragged record
	scratch  scratch  // stored records: one where the Source has no memory to show, or those that are staged
}

// newReader returns the reader of one Filler. The pace of every field starts at one record per
// measurement, so that the first batch is timed record by record.
func newReader(p *Plan, plain bool) *reader {
	r := &reader{plan: p, guard: guard{p.Source.Fault, plain}}
	r.watch = stopwatch{clock: p.Clock, fresh: true, pace: slices.Repeat([]time.Duration{pieceTime},
		len(p.Fields))}
	r.progress.on = p.OneByOne
	r.progress.set(-1, -1, -1)
	return r
}

// gather has the Source copy records. A mapped file that was cut short faults in the middle of the copy; guard turns
// the fault into an error of this batch, where it would otherwise end the process.
func (r *reader) gather(ctx context.Context, field string, indices []int, dst []byte) (err error) {
	defer r.guard.catch(&err)
	return r.plan.Source.Records.Gather(ctx, field, indices, dst)
}

// copy gathers places [lo, hi) of field f: by one call, or record by record if a Timeout has to
// name the record that hangs.
func (r *reader) copy(ctx context.Context, b *Batch, f, lo, hi int, dst []byte) error {
	fd := &r.plan.Fields[f]
	step := hi - lo
	if r.plan.OneByOne {
		step = 1
	}
	for i := lo; i < hi; i += step {
		r.progress.set(b.slot, f, b.indices[i])
		if err := r.gather(ctx, fd.In.Name, b.indices[i:i+step], dst[(i-lo)*fd.Size:(i-lo+step)*fd.Size]); err != nil {
			return r.locate(ctx, b, f, lo, hi, err)
		}
	}
	r.watch.read(r.watch.lap(), b.indices[lo:hi], len(dst))
	return nil
}

// stored returns the bytes of a record: a view of the Source's memory, or, if the record is not one
// piece of memory, a copy that is valid until the next call.
func (r *reader) stored(ctx context.Context, fd *Field, record int) ([]byte, error) {
	return r.storedIn(ctx, fd, record, &r.scratch, r.ends[:])
}

// storedIn is stored with the caller's memory for the copy and for the offsets of a ragged record.
// A JointFunc needs several stored records at once, which would overwrite each other in r.scratch.
func (r *reader) storedIn(ctx context.Context, fd *Field, record int, memory *scratch, ends []int64) ([]byte, error) {
	src, name := &r.plan.Source, fd.In.Name
	if src.contiguous(name, record, record+1) {
		v, err := src.show(fd, record, record+1, ends)
		return v.Bytes(), err
	}
	if fd.In.Ragged {
		var err error
		*memory, err = src.Ragged.GatherRagged(ctx, name, r.single.of(record), ends, *memory)
		return *memory, err
	}
	to := memory.room(fd.Stored)
	return to, src.Records.Gather(ctx, name, r.single.of(record), to)
}

// locate finds the record that reading places [lo, hi) of field f failed on. A Source that reads many records by one
// call may not name the record in its error, so that the records are then read one by one: a failed batch may be slow,
// and a user needs the number to find the file.
func (r *reader) locate(ctx context.Context, b *Batch, f, lo, hi int, cause error) *Error {
	found := &Error{Field: f, Record: -1, Err: cause}
	var named numbered
	if errors.As(cause, &named) {
		found.Record = named.Record()
		return found
	}
	for i := lo; i < hi; i++ {
		err := r.probe(ctx, f, b.indices[i])
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			found.Record, found.Err = b.indices[i], err
			break
		}
	}
	return found
}

// probe reads one record of field f and drops the bytes. probe allocates its buffer: it runs only
// after an error, where speed does not matter.
func (r *reader) probe(ctx context.Context, f, record int) (err error) {
	defer r.guard.catch(&err)
	fd, ends := &r.plan.Fields[f], make([]int64, 2)
	if fd.In.Ragged {
		_, err := r.plan.Source.Ragged.GatherRagged(ctx, fd.In.Name, []int{record}, ends, nil)
		return err
	}
	return r.gather(ctx, fd.In.Name, []int{record}, make([]byte, fd.Stored))
}

// contiguous reports whether records [a, b) are one piece of memory of the Source.
func (s *Source) contiguous(field string, a, b int) bool {
	return s.Chunked == nil || s.Chunked.Contiguous(field, a, b)
}

// show returns records [a, b) as a view of memory that is warm, and sets the offsets of a ragged
// field. The pages are read by a system call first. A page fault in the consumer instead would
// block a thread that the Go scheduler believes to be running, and end the process if the file was
// truncated.
func (s *Source) show(fd *Field, a, b int, offsets []int64) (v tensor.View, err error) {
	if s.Mapped != nil {
		if err := s.Mapped.Warm(fd.In.Name, a, b); err != nil {
			return v, err
		}
	}
	return s.slice(fd, a, b, offsets)
}

// slice is show without reading the pages. The length is checked, since a user's Source may return
// fewer records, and every later index relies on it.
func (s *Source) slice(fd *Field, a, b int, offsets []int64) (v tensor.View, err error) {
	if fd.In.Ragged {
		return s.Ragged.SliceRagged(fd.In.Name, a, b, offsets[:b-a+1])
	}
	v, err = s.Records.Slice(fd.In.Name, a, b)
	if err == nil && v.Len() != b-a {
		err = fmt.Errorf("the Source's Slice returned %d records, not %d", v.Len(), b-a)
	}
	return v, err
}

// single is a list of one record number that lives in the reader: a literal []int{record} would be
// allocated on the heap, as it escapes through the interface.
type single [1]int

// of returns the list, valid until the next call of of.
func (l *single) of(record int) []int {
	l[0] = record
	return l[:]
}

// scratch is memory for stored records, which grows to the longest request.
type scratch []byte

// room returns n bytes, valid until the next call.
func (b *scratch) room(n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}
