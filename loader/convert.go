package loader

import (
	"context"
	"fmt"
	"time"
)

// Looking at the clock takes as long as a small record. So it is looked at twice for as many
// records as should take pieceTime, of which that is less than a hundredth: when the first of them
// was read, and when all are done.
const (
	pieceTime = 16 * time.Microsecond
	mostTimed = 64 // records at most, of which a straggler may be any
)

// together returns how many records of field f are timed as one, by what the last ones took.
func (w *worker) together(f int) int {
	return min(mostTimed, int(max(1, pieceTime/max(1, w.pace[f]))))
}

// convert transforms places [lo, hi) of field f from the Source's memory.
func (w *worker) convert(p *pass, s *slot, f, lo, hi int, dst []byte) error {
	fd, step := &w.ld.fields[f], w.together(f)
	began := w.at
	w.leadOff(s, f, lo, hi)
	reading := w.lap()
	for from := lo; from < hi; from += step {
		to := min(from+step, hi)
		read, err := w.convertSome(p, s, f, from, to, dst[(from-lo)*fd.size:(to-lo)*fd.size])
		if err != nil {
			return err
		}
		read -= w.at
		took := w.lap()
		reading += min(took, read*time.Duration(to-from))
		w.spent.record(f, s.indices[from], to-from, took)
	}
	took := w.at - began
	w.pace[f] = took / time.Duration(max(1, hi-lo))
	w.spent.transform += took - reading
	w.read(reading, s.indices[lo:hi], int(w.rowsOf(s, f, lo, hi))*fd.stored)
	return nil
}

// rowsOf returns how many rows the Source has of places [lo, hi) of field f: one a record, or of
// variable length as many as offsets says, which are lengths until seal.
func (w *worker) rowsOf(s *slot, f, lo, hi int) int64 {
	if !w.ld.fields[f].in.Ragged {
		return int64(hi - lo)
	}
	rows := int64(0)
	for _, n := range s.offsets[f][lo+1 : hi+1] {
		rows += n
	}
	return rows
}

// convertSome transforms places [lo, hi) and returns when the first record was there.
func (w *worker) convertSome(p *pass, s *slot, f, lo, hi int, dst []byte) (first time.Duration, err error) {
	size := w.ld.fields[f].size
	r := Record{Epoch: s.part.number, Seed: w.ld.opts.Seed, repeats: w.ld.repeats}
	for i := lo; i < hi; i++ {
		r.Index, r.Position = s.indices[i], s.position+i
		w.mark(s, f, r.Index)
		src := w.lead.take(i)
		w.leadOn(s, f, i)
		read, err := w.convertOne(p.ctx, f, dst[(i-lo)*size:(i-lo+1)*size], src, r, i == lo)
		if err != nil {
			return 0, w.ld.place(&Error{Epoch: r.Epoch, Batch: s.step, Field: w.ld.fields[f].in.Name, Record: r.Index, Err: err})
		}
		if i == lo {
			first = read
		}
		if w.ld.fields[f].in.Ragged {
			s.offsets[f][i+1] = w.ends[1] // lengths, until seal adds them up
		}
	}
	return first, nil
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
	if ld.can.Contiguous(name, record, record+1) {
		v, err := w.show(fd, record, record+1, w.ends[:])
		return v.Bytes(), err
	}
	if fd.in.Ragged {
		var err error
		w.scratch, err = ld.can.Ragged.GatherRagged(ctx, name, w.one(record), w.ends[:], w.scratch)
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
