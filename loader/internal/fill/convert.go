package fill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/internal/staged"
)

// RecordFunc converts the stored bytes src to dst, which has the record's length in a batch. The
// function must not keep r: the converter reuses one Record for all calls.
type RecordFunc func(dst, src []byte, r *Record) error

// Stage is a transform that completes a record some time after Put, for example in another process.
// Flush waits for all records that were put.
type Stage = staged.Stage[*Record]

// JointFunc is a RecordFunc for a field that leads other fields, such as an image with boxes and
// masks. One call converts the record in the leading field and in all led fields, because the led
// fields need the random choices of the leading one. outs and ins hold one slice per led field, in
// the order of Field.Leads. A ragged led field is appended to outs[k][:0]. The function returns
// dst, which it appends to if the leading field itself is ragged.
type JointFunc func(dst, src []byte, outs, ins [][]byte, r *Record) ([]byte, error)

// Record names the record that a RecordFunc works on.
type Record struct {
	Epoch    int
	Index    int // record number in the Source
	Position int // position in the epoch over all ranks
}

// converter builds records of fields from a reader's bytes, by functions of the caller.
type converter struct {
	reader *reader
	queue  queue
	funcs  []RecordFunc // by field; nil for copied, leading and led fields
	stages []Stage      // by field; nil for fields without a Stage
	joints []JointFunc  // by field; nil for fields whose function makes no other field as well
	record Record       // the record being converted

	// Of the fields that are led.
	outs, ins [][]byte
	scratch   []scratch
	ends      [2]int64
}

// join allocates the argument slices of a JointFunc for the field that leads most others. All
// JointFuncs of this converter share them: a converter serves one goroutine, and runs one JointFunc
// at a time.
func (c *converter) join(p *Plan) {
	most := 0
	for i := range p.Fields {
		most = max(most, len(p.Fields[i].Leads))
	}
	if most > 0 {
		c.outs, c.ins, c.scratch = make([][]byte, most), make([][]byte, most), make([]scratch, most)
	}
}

// together converts the record at place i in field f, and in the fields that f leads, by one call
// of the JointFunc. Each led field has its own scratch memory: all stored records must be readable
// at the same time.
func (c *converter) together(ctx context.Context, b *Batch, f, i int, dst, src []byte) error {
	p := c.reader.plan
	led := p.Fields[f].Leads
	for k, at := range led {
		fd := &p.Fields[at]
		if !fd.Made() {
			stored, err := c.reader.storedIn(ctx, fd, c.record.Index, &c.scratch[k], c.ends[:])
			if err != nil {
				return err
			}
			c.ins[k] = stored
		}
		if fd.Ragged {
			c.outs[k] = c.grown(b, at, i)
			continue
		}
		c.outs[k] = b.buffer(at)[i*fd.Size : (i+1)*fd.Size]
		if fd.In.Ragged {
			b.offsets[at][i+1] = c.ends[1]
		}
	}
	if p.Fields[f].Ragged {
		dst = c.grown(b, f, i)
	}
	dst, err := c.joints[f](dst, src, c.outs[:len(led)], c.ins[:len(led)], &c.record)
	if err != nil {
		return err
	}
	if p.Fields[f].Ragged {
		b.made[f][i] = dst
	}
	for k, at := range led {
		if p.Fields[at].Ragged {
			b.made[at][i] = c.outs[k]
		}
	}
	return nil
}

// grown returns the memory of earlier batches for place i of a field whose function makes records
// of any length. Padded fields take memory from the Plan's spare list, since recycle returned the
// place's own memory.
func (c *converter) grown(b *Batch, f, i int) []byte {
	if b.made[f][i] == nil && c.reader.plan.Fields[f].Padding != nil {
		b.made[f][i] = c.reader.plan.spare.take()
	}
	return b.made[f][i]
}

// fill converts places [lo, hi) of field f. A Stage may still hold records when an error occurs, so
// that fill flushes the Stage in any case: no Stage may write to dst after fill has returned. An
// error that the flush reports belongs to an earlier record, and wins.
func (c *converter) fill(ctx context.Context, b *Batch, f, lo, hi int, dst []byte) error {
	err := c.pieces(ctx, b, f, lo, hi, dst)
	if c.stages[f] == nil {
		return err
	}
	if late := c.flush(ctx, f); late != nil && (err == nil || late.Record >= 0 || late.Final) {
		return late // of a record before the one of err
	}
	return err
}

// flush waits for the records of field f that were put to its Stage, and counts the wait as
// transform time.
func (c *converter) flush(ctx context.Context, f int) (failed *Error) {
	var err error
	defer func() {
		if err != nil {
			failed = stageError(f, -1, err)
		}
	}()
	defer c.reader.guard.catch(&err)
	err = c.stages[f].Flush(ctx)
	w := &c.reader.watch
	w.cost.Transform += w.lap()
	return nil
}

// stageError wraps an error of the Stage of field f. A Stage reports errors late, so that the error
// itself may name an earlier record than the record just put. A negative record in a staged.Error
// means that the Stage as a whole is broken: then Final stops Backfill, which would only try 16
// more records on the same broken Stage.
func stageError(f, record int, err error) *Error {
	var at *staged.Error
	if errors.As(err, &at) {
		record, err = at.Record, at.Err
	}
	return &Error{Field: f, Record: record, Alone: record >= 0, Final: at != nil && at.Record < 0,
		Err: fmt.Errorf("transform: %w", err)}
}

// pieces converts places [lo, hi) of field f: directly from the Source's memory, or in pieces of as
// many records as stage gathers at a time.
func (c *converter) pieces(ctx context.Context, b *Batch, f, lo, hi int, dst []byte) error {
	fd := &c.reader.plan.Fields[f]
	for from := lo; from < hi; {
		began := c.reader.watch.at
		to, staged := c.stage(ctx, b, f, from, hi)
		if !staged {
			c.queue.start(b, fd, from, to)
		}
		if err := c.timed(ctx, b, f, from, to, dst[(from-lo)*fd.Size:(to-lo)*fd.Size], began); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// stage gathers the first of places [lo, hi) of field f before they are converted, if the last
// batch was cold. The Source then reads many records at once, where functions would wait for one
// record after another. stage returns the end of the places that it looked at. If the gather fails,
// the records are read one by one: only then does the error name the right record.
func (c *converter) stage(ctx context.Context, b *Batch, f, lo, hi int) (end int, staged bool) {
	r, q := c.reader, &c.queue
	fd := &r.plan.Fields[f]
	q.staged = nil
	if !r.plan.gathers(fd, b.indices[lo], r.watch.cold) {
		return hi, false
	}
	n := min(hi-lo, r.plan.Stage/max(1, fd.Stored))
	dst := r.scratch.room(n * fd.Stored)
	if r.gather(ctx, fd.In.Name, b.indices[lo:lo+n], dst) != nil {
		return lo + n, false
	}
	q.staged, q.first, q.size, q.end = dst, lo, fd.Stored, 0
	return lo + n, true
}

// timed converts places [lo, hi), and splits the time since began into reading and transforming.
// The clock is read twice per piece of records, not per record; stopwatch.together says why. The
// first record of a piece is timed exactly, and its read time is taken to be typical of the piece.
func (c *converter) timed(ctx context.Context, b *Batch, f, lo, hi int, dst []byte, began time.Duration) error {
	w := &c.reader.watch
	fd, step := &c.reader.plan.Fields[f], w.together(f)
	reading := w.lap()
	for from := lo; from < hi; from += step {
		to := min(from+step, hi)
		read, err := c.some(ctx, b, f, from, to, dst[(from-lo)*fd.Size:(to-lo)*fd.Size])
		if err != nil {
			return err
		}
		read -= w.at
		took := w.lap()
		reading += min(took, read*time.Duration(to-from))
		w.record(f, b.indices[from], to-from, took)
	}
	took := w.at - began
	w.pace[f] = took / time.Duration(max(1, hi-lo))
	w.cost.Transform += took - reading
	w.read(reading, b.indices[lo:hi], int(b.rowsOf(f, lo, hi))*fd.Stored)
	return nil
}

// some converts places [lo, hi) and returns the time at which the first record was read. The loop
// body is kept small, since small records convert faster than a deferred call takes: one recover
// serves all records of the piece, and c.record says which record was current when a panic came.
func (c *converter) some(ctx context.Context, b *Batch, f, lo, hi int, dst []byte) (first time.Duration, err error) {
	r, fd, do := &c.record, &c.reader.plan.Fields[f], c.funcs[f]
	r.Epoch = b.epoch.Number
	defer func() {
		c.reader.guard.handle(recover(), &err)
		if _, is := err.(*Error); err != nil && !is {
			err = &Error{Field: f, Record: r.Index, Alone: true, Err: err}
		}
	}()
	for i := lo; i < hi; i++ {
		r.Index, r.Position = b.indices[i], b.position+i
		c.reader.progress.set(b.slot, f, r.Index)
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		src := c.queue.take(i)
		c.queue.advance(b, fd, i)
		if src == nil {
			if src, err = c.reader.stored(ctx, fd, r.Index); err != nil {
				return 0, err
			}
		}
		if i == lo {
			first = c.reader.watch.clock()
		}
		to := dst[(i-lo)*fd.Size : (i-lo+1)*fd.Size]
		if do == nil {
			err = c.other(ctx, b, f, i, to, src)
		} else if err = do(to, src, r); err != nil {
			err = fmt.Errorf("transform: %w", err)
		}
		if err != nil {
			return 0, err
		}
		if fd.In.Ragged {
			b.offsets[f][i+1] = c.reader.ends[1] // lengths, until Seal adds them up
		}
	}
	return first, nil
}

// other converts place i of a field that has a Stage or a JointFunc instead of a RecordFunc.
func (c *converter) other(ctx context.Context, b *Batch, f, i int, dst, src []byte) error {
	if c.stages[f] != nil {
		if err := c.stages[f].Put(ctx, dst, src, &c.record); err != nil {
			return stageError(f, c.record.Index, err)
		}
		return nil
	}
	if err := c.together(ctx, b, f, i, dst, src); err != nil {
		return fmt.Errorf("transform: %w", err)
	}
	return nil
}
