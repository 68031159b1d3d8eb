package loader

import (
	"context"
	"fmt"
	"runtime/debug"
)

// BatchFiller makes single batches in the caller's own memory, in the goroutine that asks: for a
// framework's tensors, or to look at a batch out of order. It has nothing to do with what
// the Loader iterates, and serves one goroutine; there may be any number of them. After the
// first batch it allocates nothing.
type BatchFiller struct {
	w *worker
	s *slot
	p pass
}

// BatchFiller returns a new BatchFiller.
func (ld *Loader) BatchFiller() (*BatchFiller, error) {
	w, err := ld.newWorker(-1)
	if err != nil {
		return nil, err
	}
	f := &BatchFiller{w: w, s: newSlot(ld, -1)}
	f.s.own = make([][]byte, len(ld.fields))
	return f, nil
}

// Fill makes a batch of an epoch. dst has one slice per field, in the order of Loader.Specs,
// of at least BatchSize records, aligned for the field's elements; of a field of variable
// length it must have room for the batch's rows. It returns the number of records: what is
// behind them in dst is arbitrary.
func (f *BatchFiller) Fill(ctx context.Context, epoch, step int, dst ...[]byte) (n int, err error) {
	if err := f.aim(ctx, epoch, step, dst); err != nil {
		return 0, err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	s := f.s
	f.w.at = 0
	defer s.unlease()
	err = f.w.prepare(&f.p, s)
	if err == nil {
		err = f.w.fillRange(&f.p, s, 0, len(s.indices))
	}
	if err == nil {
		err = f.w.seal(&f.p, s)
	}
	if err != nil {
		s.err = err
		return 0, errorOf(s)
	}
	ld := f.w.ld
	ld.mu.Lock()
	ld.stats.add(&f.w.times, ld.fields)
	ld.mu.Unlock()
	return len(s.indices), nil
}

// aim sets what to fill next.
func (f *BatchFiller) aim(ctx context.Context, epoch, step int, dst [][]byte) error {
	s, ld := f.s, f.w.ld
	if s.part == nil || s.part.number != epoch {
		s.part = ld.part(epoch, 0)
	}
	if step < 0 || step >= s.part.steps {
		return fmt.Errorf("loader: fill: epoch %d has no batch %d: it has %d", epoch, step, s.part.steps)
	}
	if len(dst) != len(ld.fields) {
		return fmt.Errorf("loader: fill: memory for %d fields; batches have %d", len(dst), len(ld.fields))
	}
	for i := range dst {
		if need := ld.opts.BatchSize * ld.fields[i].size; len(dst[i]) < need {
			return fmt.Errorf("loader: fill: %d bytes for field %q; %d records need %d", len(dst[i]), ld.fields[i].out.Name, ld.opts.BatchSize, need)
		}
	}
	s.step, s.err, f.p.ctx = step, nil, ctx
	copy(s.own, dst)
	return nil
}

// Indices returns the numbers of the records of the last batch, valid until the next.
func (f *BatchFiller) Indices() []int { return f.s.indices }

// Offsets returns those of a field of variable length, as Batch.Offsets does.
func (f *BatchFiller) Offsets(name string) []int64 { return f.s.offsetsOf(name) }

// Mask returns which of them count, as Batch.Mask does.
func (f *BatchFiller) Mask() []bool { return f.s.mask }
