package fill

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/tensor"
)

// Filler fills the batches of a Plan. Each is used by one goroutine at a time. After the first batch it allocates
// nothing.
type Filler struct {
	plan    *Plan
	reader  *reader
	convert converter
	ahead   readAhead
	collate func(b *Batch) error // nil if there is none
}

// Panics says how panics of the Source, of functions and of Collate are handled.
type Panics int

// The two ways to treat panics.
const (
	Errors      Panics = iota // the batch fails, with the stack
	PassThrough               // but for faults in memory of the Source, which are errors
)

// Functions holds the functions of one Filler. Records, Stages and Joints have an entry by field: each field that
// Converts and is not led has one of the three. Collate works on whole batches, and may be nil.
type Functions struct {
	Records []RecordFunc
	Stages  []Stage
	Joints  []JointFunc // nil if no field leads others
	Collate func(b *Batch) error
}

// NewFiller returns a Filler with its own functions.
func (p *Plan) NewFiller(do Functions, panics Panics) *Filler {
	r := newReader(p, panics == PassThrough)
	if do.Stages == nil {
		do.Stages = make([]Stage, len(p.Fields))
	}
	w := &Filler{
		plan: p, reader: r, collate: do.Collate,
		convert: converter{reader: r, queue: queue{source: &p.Source, guard: &r.guard}, funcs: do.Records, stages: do.Stages,
			joints: do.Joints},
		ahead: readAhead{plan: p, upcoming: make([]int, p.Batch)},
	}
	w.convert.join(p)
	return w
}

// Start begins a batch, or a piece of one. Its cost counts from the time at on, or from the first look at the
// clock if that is 0.
func (w *Filler) Start(at time.Duration) { w.reader.watch.at = at }

// At returns when the Filler last looked at the clock.
func (w *Filler) At() time.Duration { return w.reader.watch.at }

// Join begins a piece of a batch that another Filler chose the records of.
func (w *Filler) Join() { w.reader.watch.restart() }

// MoveCost adds to sum what the Filler did since the last call.
func (w *Filler) MoveCost(sum *Cost) {
	sum.Add(&w.reader.watch.cost)
	w.reader.watch.cost = Cost{}
}

// IsCold reports whether neither the latest batch nor the one before it was read at the speed of memory.
func (w *Filler) IsCold() bool { return w.reader.watch.cold && w.reader.watch.slow() }

// Progress returns what the Filler works on, if Plan.OneByOne: the slot of a batch, and a field and a record
// of it, and what else it waits for. Each is -1, or empty, if it is not known. Any goroutine may call it.
func (w *Filler) Progress() (slot, field, record int, on string) {
	m := &w.reader.progress
	slot, field, record = int(m.slot.Load()), int(m.field.Load()), int(m.record.Load())
	if field >= 0 && w.convert.stages[field] != nil {
		if at, who := w.convert.stages[field].Waiting(); at >= 0 {
			record, on = at, who
		}
	}
	return slot, field, record, on
}

// Rest has Progress say that the Filler works on nothing.
func (w *Filler) Rest() { w.reader.progress.set(-1, -1, -1) }

// Catch is deferred around code that is the caller's: a panic there becomes an error, as it does in a Filler.
func (w *Filler) Catch(err *error) {
	w.reader.guard.handle(recover(), err)
}

// Scratch returns how many bytes of stored records the Filler has memory for.
func (w *Filler) Scratch() int { return cap(w.reader.scratch) }

// Choose sets the records of b, which is step of an epoch and the batch number tick of its pass, and which of
// its fields shall be views. It reads nothing, but leases the Source until Release.
func (w *Filler) Choose(ctx context.Context, b *Batch, e *order.Epoch, step, tick int) (err error) {
	defer w.reader.guard.catch(&err)
	watch := &w.reader.watch
	b.epoch, b.step = e, step
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.choose(b); err != nil {
		return err
	}
	watch.cold = watch.slow() && !watch.fresh
	if watch.slow() {
		w.ahead.next(b, tick, watch.cold)
		watch.at = watch.clock() // not part of a read
	}
	watch.restart()
	if err := w.plan.Source.Records.Retain(); err != nil {
		return err
	}
	b.leased = true
	w.plan.chooseViews(b)
	return nil
}

// choose sets the records of b.
func (w *Filler) choose(b *Batch) error {
	pos, n, pad := b.epoch.Slice(b.step)
	b.position, b.indices, b.mask = pos, b.all[:n], b.allMask[:n]
	if first, is := b.epoch.RunAt(pos, n, pad); is {
		b.run = n
		order.Consecutive(first, b.indices)
	} else {
		watch := &w.reader.watch
		watch.begin()
		b.epoch.Choose(pos, pad, b.indices)
		watch.cost.Sampler += watch.lap()
		b.run = order.RunLength(b.indices)
	}
	copy(b.mask, w.plan.allValid[:n-pad])
	clear(b.mask[n-pad:])
	if i := b.outside(); i >= 0 {
		return fmt.Errorf("the Sampler puts record %d at position %d, but the Source has %d records", b.indices[i], pos+i,
			w.plan.Source.Records.Len())
	}
	return nil
}

// chooseViews chooses the fields that can be views: if the records are one run of the Source, and
// nobody wants them in memory of his own.
func (p *Plan) chooseViews(b *Batch) {
	n, a := len(b.indices), b.indices[0]
	if b.own != nil || !p.Views || p.Policy != Fail && !p.viewable || b.run < n {
		return
	}
	for f := range p.Fields {
		fd := &p.Fields[f]
		b.viewing[f] = fd.Viewable() && p.Source.contiguous(fd.In.Name, a, a+n)
	}
	p.keepWhole(b)
}

// keepWhole has no field of b be a view if some are not, where repair may be needed: what it puts in the place of a
// record, it puts there in all fields.
func (p *Plan) keepWhole(b *Batch) {
	if p.Policy != Fail && !b.IsView() {
		clear(b.viewing)
	}
}

// Fill fills places [lo, hi) of all fields that are not views. Its error is an [*Error].
func (w *Filler) Fill(ctx context.Context, b *Batch, lo, hi int) error {
	err := w.fill(ctx, b, lo, hi)
	if err != nil && w.plan.Policy != Fail && ctx.Err() == nil && !err.(*Error).Final {
		err = w.repair(ctx, b, lo, hi, err.(*Error), func(i int) error { return w.fill(ctx, b, i, i+1) })
	}
	return err
}

// fill is Fill that fails.
func (w *Filler) fill(ctx context.Context, b *Batch, lo, hi int) error {
	if b.IsView() {
		return nil
	}
	w.reader.watch.begin()
	for f := range w.plan.Fields {
		fd := &w.plan.Fields[f]
		if b.viewing[f] || fd.Made() || fd.Ragged && !fd.Grown() || fd.Led {
			continue
		}
		var err error
		dst := b.buffer(f)[lo*fd.Size : hi*fd.Size]
		if fd.Converts {
			err = w.convert.fill(ctx, b, f, lo, hi, dst)
		} else {
			err = w.reader.copy(ctx, b, f, lo, hi, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Seal completes b: it fills the fields of variable length and calls Collate. All other fields are complete by then.
func (w *Filler) Seal(ctx context.Context, b *Batch) (err error) {
	defer w.reader.guard.catch(&err)
	if w.plan.ragged {
		if err := w.fillRagged(ctx, b); err != nil {
			return err
		}
	}
	for f := range w.plan.Fields {
		if fd := &w.plan.Fields[f]; !b.viewing[f] && !fd.Ragged {
			b.views[f] = tensor.Of(fd.Out, len(b.indices), b.buffer(f))
		}
	}
	if w.collate != nil {
		watch := &w.reader.watch
		watch.lap()
		err = w.collate(b)
		watch.cost.Collate += watch.lap()
	}
	if !b.anyView() {
		b.Release()
	}
	return err
}

// fillRagged gathers the fields of variable length, and adds up the lengths of those that were converted. If a
// record fails, another one takes its place in all fields, and they are gathered over again.
func (w *Filler) fillRagged(ctx context.Context, b *Batch) error {
	failed := w.reader.gatherRagged(ctx, b)
	for round := 0; failed != nil; round++ {
		if w.plan.Policy == Fail || ctx.Err() != nil || round == attempts || !b.has(failed) {
			return failed
		}
		if err := w.repair(ctx, b, 0, len(b.indices), failed, func(i int) error {
			return w.reader.probeRagged(ctx, b, i)
		}); err != nil {
			return err
		}
		failed = w.reader.gatherRagged(ctx, b)
	}
	b.recycle()
	for f := range w.plan.Fields {
		if fd := &w.plan.Fields[f]; fd.In.Ragged && !fd.Ragged {
			ends := b.offsets[f][:len(b.indices)+1]
			ends[0] = 0
			for i := range b.indices {
				ends[i+1] += ends[i]
			}
		}
	}
	return nil
}
