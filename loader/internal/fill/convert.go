package fill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/internal/staged"
)

// RecordFunc converts the stored bytes src to dst, which has the record's length in a batch. It does not keep r.
type RecordFunc func(dst, src []byte, r *Record) error

// Stage makes records that are done some time after they were put.
type Stage = staged.Stage[*Record]

// JointFunc is a RecordFunc of a field that leads others: it makes these, too, by number, of what is stored of them. A
// ragged one it appends to outs[k][:0]. It returns dst, which it appends to if the field itself is ragged.
type JointFunc func(dst, src []byte, outs, ins [][]byte, r *Record) ([]byte, error)

// Record says which record a RecordFunc works on.
type Record struct {
	Epoch    int
	Index    int // its number in the Source
	Position int // its place in the epoch, of all ranks
}

// converter builds records of fields from a reader's bytes, by functions of the caller.
type converter struct {
	reader *reader
	queue  queue
	funcs  []RecordFunc // by field; nil of those that are copied, and of those that lead or are led
	stages []Stage      // by field; nil of those that have none
	joints []JointFunc  // by field; nil of those that lead none
	record Record       // that is converted

	// Of the fields that are led.
	outs, ins [][]byte
	scratch   []scratch
	ends      [2]int64
}

// join makes room for as many led fields as one field leads.
func (c *converter) join(p *Plan) {
	most := 0
	for i := range p.Fields {
		most = max(most, len(p.Fields[i].Leads))
	}
	if most > 0 {
		c.outs, c.ins, c.scratch = make([][]byte, most), make([][]byte, most), make([]scratch, most)
	}
}

// together converts the record at place i in field f, and in the fields that f's function makes as well (Field.Leads),
// by one call.
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

// grown returns the memory for place i of a field that a function makes, of any length.
func (c *converter) grown(b *Batch, f, i int) []byte {
	if b.made[f][i] == nil && c.reader.plan.Fields[f].Padding != nil {
		b.made[f][i] = c.reader.plan.spare.take()
	}
	return b.made[f][i]
}

// fill converts places [lo, hi) of field f.
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

// flush waits for the records of field f that were put to its Stage.
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

// stageError returns an error of the Stage of field f, which is of a record unless it says of which.
func stageError(f, record int, err error) *Error {
	var at *staged.Error
	if errors.As(err, &at) {
		record, err = at.Record, at.Err
	}
	return &Error{Field: f, Record: record, Alone: record >= 0, Final: at != nil && at.Record < 0,
		Err: fmt.Errorf("transform: %w", err)}
}

// pieces converts places [lo, hi) of field f from the Source's memory, or as many at a time as are staged.
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

// stage gathers the first of places [lo, hi) of field f before they are converted, if the last batch was cold: the
// Source reads many of them at once, where functions would wait for one record after another. It returns the end
// of those that it looked at. Records that cannot be gathered are read one by one, for the error of that
// record.
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

// timed converts places [lo, hi), for which something was done since began.
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

// some converts places [lo, hi) and returns the time at which the first record was read. A record takes little more
// time than its RecordFunc: everything else is done once for all of them, if possible.
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

// other converts place i of a field that has no RecordFunc.
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
