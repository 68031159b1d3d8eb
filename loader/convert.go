package loader

import (
	"context"
	"fmt"
	"time"
)

// How often the clock is looked at: it takes as long as a small record.
const (
	sampled  = 8                    // small records to one whose read is timed by itself
	smallest = 16 << 10             // bytes that are not small
	quick    = 2 * time.Microsecond // small records that take less are timed so many together
)

// convert transforms places [lo, hi) of field f from the Source's memory.
func (w *worker) convert(p *pass, s *slot, f, lo, hi int, dst []byte) error {
	fd := &w.ld.fields[f]
	every, together := 1, 1
	if fd.size < smallest {
		every = sampled
		if w.quick[f] {
			together = sampled
		}
	}
	ahead := w.lead.start(fd.stored)
	for i := lo; i < min(lo+ahead, hi); i++ {
		w.ask(f, i, s.indices[i])
	}
	var reading time.Duration
	began := w.ld.now()
	last := began
	r := Record{Epoch: s.part.number, Seed: w.ld.opts.Seed, repeats: w.ld.repeats}
	for i := lo; i < hi; i++ {
		r.Index, r.Position = s.indices[i], s.position+i
		w.mark(s, f, r.Index)
		timed := (i-lo)%every == 0
		src := w.lead.take(i)
		if i+ahead < hi {
			w.ask(f, i+ahead, s.indices[i+ahead])
		}
		read, err := w.convertOne(p.ctx, f, dst[(i-lo)*fd.size:(i-lo+1)*fd.size], src, r, timed)
		if err != nil {
			return &Error{r.Epoch, s.step, fd.in.Name, r.Index, err}
		}
		if timed {
			reading += (read - last) * time.Duration(min(every, hi-i))
		}
		if fd.in.Ragged {
			s.offsets[f][i+1] = w.ends[1] // lengths, until seal adds them up
		}
		if n := (i-lo)%together + 1; n == together || i == hi-1 {
			now := w.ld.now()
			w.spent.record(f, s.indices[i-n+1], n, now-last)
			last = now
		}
	}
	w.quick[f] = last-began < quick*time.Duration(hi-lo)
	w.spent.transform += max(0, last-began-reading)
	w.read(reading, s.indices[lo:hi], (hi-lo)*fd.stored)
	return nil
}

// convertOne transforms a record, which it reads unless src has it, and returns when it was
// there if that is to be timed.
func (w *worker) convertOne(ctx context.Context, f int, dst, src []byte, r Record, timed bool) (read time.Duration, err error) {
	defer w.catch(&err)
	if err := ctx.Err(); err != nil {
		return read, err
	}
	if src == nil {
		if src, err = w.stored(ctx, &w.ld.fields[f], r.Index); err != nil {
			return read, err
		}
	}
	if timed {
		read = w.ld.now()
	}
	if err := w.funcs[f](dst, src, r); err != nil {
		return read, fmt.Errorf("transform: %w", err)
	}
	return read, nil
}

// stored returns the bytes of a record: the Source's memory, or a copy where it has none.
func (w *worker) stored(ctx context.Context, fd *field, record int) ([]byte, error) {
	ld, name := w.ld, fd.in.Name
	if ld.pieces == nil || ld.pieces.Contiguous(name, record, record+1) {
		v, err := w.show(fd, record, record+1, w.ends[:])
		return v.Bytes(), err
	}
	if fd.in.Ragged {
		var err error
		w.scratch, err = ld.ragged.GatherRagged(ctx, name, w.one(record), w.ends[:], w.scratch)
		return w.scratch, err
	}
	src := w.scratch[:fd.stored]
	return src, ld.src.Gather(ctx, name, w.one(record), src)
}

// one returns a slice of one record number, valid until the next call.
func (w *worker) one(record int) []int {
	w.single[0] = record
	return w.single[:]
}
