package fill

import (
	"context"
	"errors"

	"github.com/penstock/penstock/loader/internal/order"
)

// Warmth says whether the memory that a batch will show needs reading first.
type Warmth int

// The states of memory.
const (
	Unknown Warmth = iota // it is read before it is shown
	Warm                  // IsInstant said that it needs no reading
)

// View makes the views of b, and reserves memory for the fields that are left to fill.
func (w *Filler) View(ctx context.Context, b *Batch, warmth Warmth) error {
	if b.anyView() {
		if err := w.views(ctx, b, warmth); err != nil {
			return err
		}
	}
	return b.Reserve()
}

// views makes the views of b. If a view fails under a repair policy, all fields are copied instead:
// the gather then fails on the bad record alone, which repair replaces.
func (w *Filler) views(ctx context.Context, b *Batch, warmth Warmth) error {
	a, n, bytes := b.indices[0], len(b.indices), 0
	watch := &w.reader.watch
	watch.begin()
	for f, viewing := range b.viewing {
		if !viewing {
			continue
		}
		if err := w.view(b, f, a, a+n, warmth); err != nil {
			if w.plan.Policy == Fail {
				return w.reader.locate(ctx, b, f, 0, n, err)
			}
			clear(b.viewing) // repair gathers the good records
			return nil
		}
		b.viewing[f] = w.plan.shows(b.views[f].Bytes())
		bytes += len(b.views[f].Bytes())
	}
	w.plan.keepWhole(b)
	watch.read(watch.lap(), b.indices[:1], bytes) // of one run
	return nil
}

// view makes field f of b a view of records [from, to) of the Source.
func (w *Filler) view(b *Batch, f, from, to int, warmth Warmth) (err error) {
	defer w.reader.guard.catch(&err)
	w.reader.progress.set(b.slot, f, from)
	src, fd := &w.plan.Source, &w.plan.Fields[f]
	if warmth == Warm {
		b.views[f], err = src.slice(fd, from, to, b.offsets[f])
	} else {
		b.views[f], err = src.show(fd, from, to, b.offsets[f])
	}
	return err
}

// IsInstant reports whether the batches of some steps, as one run of records, are views of warm
// memory only. Making such batches is no more than writing down addresses, so that the loop makes
// them itself. Errors count as no: they surface when the batch is made.
func (w *Filler) IsInstant(e *order.Epoch, step, steps int) (yes bool) {
	var err error
	defer w.reader.guard.catch(&err)
	pos, n, pad := e.Span(step, steps)
	first, is := e.RunAt(pos, n, pad)
	if !is && steps == 1 {
		first, is = e.RunOf(w.ahead.upcoming, pos, n, pad)
	}
	if !is || first < 0 || first+n > w.plan.Source.Records.Len() {
		return false
	}
	for i := range w.plan.Fields {
		if !w.plan.Source.Mapped.IsWarm(w.plan.Fields[i].In.Name, first, first+n) {
			return false
		}
	}
	return true
}

// Cut makes the batches of consecutive steps, except padded ones, as views of one run. One check
// and one slice of the Source serve all batches, since a batch of small records takes less time
// than a reading of the clock. Every batch has a lease of its own, as every batch ends on its own.
// If Cut fails, each batch must be made separately, after Uncut.
func (w *Filler) Cut(ctx context.Context, list []*Batch, e *order.Epoch, step int) (err error) {
	defer w.reader.guard.catch(&err)
	p := w.plan
	pos, n, pad := e.Span(step, len(list))
	first, is := e.RunAt(pos, n, pad)
	if !is || first < 0 || first+n > p.Source.Records.Len() || ctx.Err() != nil {
		return errNotCut
	}
	for i, b := range list {
		if err := p.Source.Records.Retain(); err != nil {
			return err
		}
		b.leased, b.epoch, b.step = true, e, step+i
		a, m := first+i*p.Batch, min(p.Batch, n-i*p.Batch)
		b.position, b.run, b.indices, b.mask = pos+i*p.Batch, m, b.all[:m], b.allMask[:m]
		b.indices[0], b.indices[m-1] = a, a+m-1
		b.ends.Store(true)
		copy(b.mask, p.allValid)
	}
	bytes := 0
	for f := range p.Fields {
		fd := &p.Fields[f]
		if !p.Source.contiguous(fd.In.Name, first, first+n) {
			return errNotCut
		}
		w.reader.progress.set(list[0].slot, f, first)
		v, err := p.Source.slice(fd, first, first+n, nil)
		if err != nil {
			return err
		}
		if !p.shows(v.Bytes()) {
			return errNotCut
		}
		bytes += len(v.Bytes())
		for i, b := range list {
			b.views[f], b.viewing[f] = v.Slice(i*p.Batch, i*p.Batch+len(b.indices)), true
		}
	}
	watch := &w.reader.watch
	watch.read(watch.lap(), list[0].indices[:1], bytes)
	return nil
}

// Uncut undoes what a failed Cut did to b. A batch that Cut did not reach has no lease, and Uncut
// leaves it alone.
func (b *Batch) Uncut() {
	b.Release()
	clear(b.viewing)
	b.ends.Store(false)
}

// errNotCut makes the caller of Cut build the batches one by one, where a true error shows with its
// record.
var errNotCut = errors.New("the batches are not one run")
