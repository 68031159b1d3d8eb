package fill

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/tensor"
)

// Filler fills the batches of a Plan. One goroutine at a time uses a Filler: its scratch memory,
// stopwatch and functions have no locks. After the first batch a Filler allocates nothing.
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

// Functions holds the functions of one Filler. Records, Stages and Joints have one entry per field:
// each field that Converts and is not led has exactly one of the three. Collate works on whole
// batches and may be nil.
type Functions struct {
	Records []RecordFunc
	Stages  []Stage
	Joints  []JointFunc // nil if no field leads others
	Collate func(b *Batch) error
}

// NewFiller returns a Filler with its own functions: transforms may keep state between records,
// such as a decoder, and need no locks for it.
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

// Start begins a batch, or a piece of a batch. The cost counts from the time at on, or, if at is 0,
// from the first reading of the clock.
func (w *Filler) Start(at time.Duration) { w.reader.watch.at = at }

// At returns the time of the Filler's latest reading of the clock, so that the loop need not read
// it again.
func (w *Filler) At() time.Duration { return w.reader.watch.at }

// Join begins a piece of a batch whose records another Filler chose. The judgement of the last
// batch is dropped, since this Filler did not choose the batch and did not announce its reads.
func (w *Filler) Join() { w.reader.watch.restart() }

// MoveCost adds the Filler's cost since the last call to sum, and clears it.
func (w *Filler) MoveCost(sum *Cost) {
	sum.Add(&w.reader.watch.cost)
	w.reader.watch.cost = Cost{}
}

// IsCold reports whether neither the latest batch nor the batch before it was read at the speed of
// memory. One slow batch is no evidence: it may have touched pages for the first time.
func (w *Filler) IsCold() bool { return w.reader.watch.cold && w.reader.watch.slow() }

// Progress returns what the Filler works on if Plan.OneByOne is set: slot, field and record, and
// the name of the function that a Stage waits for. Unknown values are -1 or empty. Any goroutine
// may call Progress.
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

// Rest makes Progress report that the Filler works on nothing. Otherwise a timeout of a later batch
// in the same slot would blame the last record of the finished batch.
func (w *Filler) Rest() { w.reader.progress.set(-1, -1, -1) }

// Catch is deferred around the caller's own code, such as Report or an Allocator: a panic there
// fails the batch just as a panic in a transform does.
func (w *Filler) Catch(err *error) {
	w.reader.guard.handle(recover(), err)
}

// Scratch returns the bytes of memory that the Filler holds for stored records.
func (w *Filler) Scratch() int { return cap(w.reader.scratch) }

// Choose sets the records of b and decides which fields become views. step is the batch's number in
// its epoch, tick its number in the pass. Choose reads no records. It leases the Source, and b
// holds the lease until Release: views must not outlive the Source's mapping.
//
// Choose also judges the batch that this Filler made before. If that batch was slow, storage is
// asked to read ahead; the time of these system calls is kept out of the read time, which would
// otherwise look slow for ever.
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

// choose sets record numbers, mask and position of b. An order that is consecutive by construction
// answers RunAt in constant time; only other orders call the Sampler, whose time is measured.
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

// chooseViews decides which fields can be views: the records must be one run of the Source, and the
// caller must not want the values in memory of its own. With a repair policy, all fields must be
// viewable, because repair replaces a record in all fields and cannot write into a view.
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

// keepWhole turns all views of b into copies if some fields are not views and a record may need
// repair. Repair puts the replacement into all fields, and a view of the Source cannot be
// overwritten.
func (p *Plan) keepWhole(b *Batch) {
	if p.Policy != Fail && !b.IsView() {
		clear(b.viewing)
	}
}

// Fill fills places [lo, hi) of all fields that are neither views nor gathered by Seal. Its error
// is an [*Error]. Under a repair policy, a failed range is filled once more, record by record, and
// bad records are replaced.
func (w *Filler) Fill(ctx context.Context, b *Batch, lo, hi int) error {
	err := w.fill(ctx, b, lo, hi)
	if err != nil && w.plan.Policy != Fail && ctx.Err() == nil && !err.(*Error).Final {
		err = w.repair(ctx, b, lo, hi, err.(*Error), func(i int) error { return w.fill(ctx, b, i, i+1) })
	}
	return err
}

// fill is Fill without repair. Ragged fields are left to Seal, which knows the lengths of all
// records. Led fields are written together with the field that leads them.
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

// Seal completes b: it gathers the ragged fields, makes the views of buffers, and calls Collate.
// All pieces must be filled by then. A batch that was copied whole gives its lease of the Source
// back here, so that a kept batch does not keep the dataset from closing.
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

// fillRagged gathers the ragged fields, and adds up the lengths of converted ones to offsets. If a
// record fails, repair puts another record in its place in all fields, whose lengths differ, so
// that all ragged fields are gathered again. The number of rounds is limited: a Source that fails
// for good must not loop.
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
