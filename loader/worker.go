package loader

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"sync"

	"github.com/penstock/penstock/internal/staged"
	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/schedule"
	"github.com/penstock/penstock/tensor"
)

// pool makes the batches that the schedule assigns. workers and costs are complete before New
// returns and never change, so that they need no lock. others has its own lock, since any number of
// BatchFillers share it.
type pool struct {
	setup      *setup
	slots      *slots
	schedule   *schedule.Schedule
	workers    []*worker // workers that take tasks
	costs      []*costs  // costs of these workers, and of the loop's worker
	others     costs     // costs of BatchFillers
	goroutines sync.WaitGroup
}

// worker is the state of one goroutine that makes batches. No other goroutine uses its Filler,
// except for Progress.
type worker struct {
	id     int
	filler *fill.Filler
	costs  *costs
}

// newFiller returns a Filler with its own state of Transforms and Collate. Panics of user code
// become errors of the batch, because they happen in a goroutine that the user did not start and
// cannot recover in. Only with Synchronous workers, in the user's own goroutine, do they pass
// through.
func (c *setup) newFiller(id int) (*fill.Filler, error) {
	do := fill.Functions{Records: make([]fill.RecordFunc, len(c.plan.Fields)),
		Stages: make([]fill.Stage, len(c.plan.Fields))}
	var err error
	for i := range c.plan.Fields {
		f := &c.plan.Fields[i]
		if !f.Converts || f.Led {
			continue
		}
		if f.Leads != nil {
			if do.Joints == nil {
				do.Joints = make([]fill.JointFunc, len(c.plan.Fields))
			}
			if do.Joints[i], err = c.jointFunc(f, id); err != nil {
				return nil, &Error{Batch: -1, Field: f.In.Name, Record: -1, Err: err}
			}
			continue
		}
		if do.Records[i], do.Stages[i], err = c.convert(f.In, id); err != nil {
			return nil, &Error{Batch: -1, Field: f.In.Name, Record: -1, Err: err}
		}
	}
	if do.Collate, err = c.collate(id); err != nil {
		return nil, &Error{Batch: -1, Record: -1, Err: err}
	}
	panics := fill.Errors
	if c.opts.Workers == Synchronous {
		panics = fill.PassThrough
	}
	return c.plan.NewFiller(do, panics), nil
}

// convert returns how a worker converts the records of a field: by a RecordFunc or by a Stage,
// never by both.
func (c *setup) convert(in tensor.Spec, id int) (fill.RecordFunc, fill.Stage, error) {
	if t, ok := c.opts.Transforms[in.Name].(staged.Transform[Record]); ok {
		s, err := t.Stage(in, id)
		if err != nil {
			return nil, nil, err
		}
		return nil, stage{s, c}, nil
	}
	do, err := c.opts.Transforms[in.Name].Worker(in, id)
	if err != nil {
		return nil, nil, err
	}
	return func(dst, src []byte, r *fill.Record) error { return do(dst, src, c.record(r)) }, nil, nil
}

// record returns the Record that a Transform sees.
func (c *setup) record(r *fill.Record) Record {
	return Record{Index: r.Index, Position: r.Position, Epoch: r.Epoch, Seed: c.opts.Seed, repeats: c.repeats}
}

// stage adapts a staged Transform to the Filler, which knows no Seed.
type stage struct {
	to  staged.Stage[Record]
	set *setup
}

func (s stage) Put(ctx context.Context, dst, src []byte, r *fill.Record) error {
	return s.to.Put(ctx, dst, src, s.set.record(r))
}

func (s stage) Flush(ctx context.Context) error { return s.to.Flush(ctx) }

func (s stage) Waiting() (record int, on string) { return s.to.Waiting() }

// collate returns a worker's function for whole batches, or nil. One MutableBatch per worker is
// reused for all batches.
func (c *setup) collate(id int) (func(b *fill.Batch) error, error) {
	if c.opts.Collate.Worker == nil {
		return nil, nil
	}
	do, err := c.opts.Collate.Worker(id)
	if err != nil {
		return nil, err
	}
	draft := c.mutable(nil)
	return func(b *fill.Batch) error {
		draft.b = b
		return do(&draft)
	}, nil
}

// newWorker returns a worker, and registers its costs for Stats.
func (c *pool) newWorker(id int) (*worker, error) {
	filler, err := c.setup.newFiller(id)
	if err != nil {
		return nil, err
	}
	w := &worker{id, filler, new(costs)}
	c.costs = append(c.costs, w.costs)
	return w, nil
}

// cost returns the work of all workers and BatchFillers so far.
func (c *pool) cost() (sum fill.Cost) {
	c.others.addTo(&sum)
	for _, one := range c.costs {
		one.addTo(&sum)
	}
	return sum
}

// start starts all workers.
func (c *pool) start() {
	for _, w := range c.workers {
		c.goroutines.Go(func() { c.run(w) })
	}
}

// run makes batches with worker w until the Loader is closed. User code may call runtime.Goexit,
// which ends this goroutine: a new one then takes over the worker, because the schedule counts on
// every worker.
func (c *pool) run(w *worker) {
	ended := false
	defer func() {
		if !ended { // runtime.Goexit: continue in a new goroutine
			c.goroutines.Go(func() { c.run(w) })
		}
	}()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("loader", "worker")))
	// A fault in mapped memory becomes a panic, which a Filler turns into an error.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for {
		t := c.schedule.Assign(w.id)
		w.filler.Start(0)
		switch t.Kind {
		case schedule.Batch:
			c.serve(w, t)
		case schedule.Piece:
			c.servePiece(w, t)
		case schedule.End:
			ended = true
			return
		}
	}
}

// serve makes the batch of a task and hands it over, or splits it among the workers. The deferred
// function hands over even if user code calls runtime.Goexit: a batch that nobody reports would
// leave the consumer waiting for ever.
func (c *pool) serve(w *worker, t schedule.Task) {
	defer trace.StartRegion(t.Ctx, "loader: batch").End()
	split, err := false, errGoexit
	defer func() {
		if !split { // otherwise another worker owns the slot
			c.handOver(w, t, err)
		}
	}()
	defer w.filler.Catch(&err) // of what is not caught nearer to a record: Report, Allocator
	b := c.slots.at(t.Slot).batch
	split, err = c.makeBatch(w, t, b)
	err = c.setup.located(t.Ctx, b, err)
}

// handOver ends a task to make a batch. The costs are counted before the consumer can see the
// batch, so that Stats taken in the loop body include it.
func (c *pool) handOver(w *worker, t schedule.Task, err error) {
	w.filler.Rest()
	w.costs.take(w.filler)
	if err != nil {
		err = batchError(t.Epoch.Number, t.Step, err)
	}
	cost := schedule.Low
	if w.filler.IsCold() {
		cost = schedule.Cold
	}
	c.schedule.Done(t.Slot, cost, err)
}

// makeBatch makes the batch of a task, or splits it. After a split the batch belongs to the workers
// that take its pieces, and the caller must not touch it.
func (c *pool) makeBatch(w *worker, t schedule.Task, b *fill.Batch) (split bool, err error) {
	if err := w.filler.Choose(t.Ctx, b, t.Epoch, t.Step, t.Tick); err != nil {
		return false, err
	}
	if t.Opens && b.IsView() {
		c.schedule.Open()
	}
	warmth := fill.Unknown
	if t.Warm {
		warmth = fill.Warm // the loop has looked
	}
	if err := w.filler.View(t.Ctx, b, warmth); err != nil {
		return false, err
	}
	if t.Opens && !b.IsView() && c.schedule.Divide(t.Slot, b.Len()) {
		return true, nil
	}
	if err := w.filler.Fill(t.Ctx, b, 0, b.Len()); err != nil {
		return false, err
	}
	return false, w.filler.Seal(t.Ctx, b)
}

// servePiece fills a piece of the first batch. Pieces are disjoint ranges of places, so that
// workers fill them without a lock. The worker that ends the last piece seals the batch and hands
// it over.
func (c *pool) servePiece(w *worker, t schedule.Task) {
	b := c.slots.at(t.Slot).batch
	n := b.Len()
	lo, hi := t.Piece*n/t.Pieces, (t.Piece+1)*n/t.Pieces
	err := errGoexit
	defer func() {
		w.costs.take(w.filler)
		last, failed := c.schedule.PieceDone(t.Slot, lo, err)
		if !last {
			return
		}
		defer func() { c.handOver(w, t, failed) }()
		if failed == nil {
			failed = errGoexit
			failed = c.seal(w, t, b)
		}
	}()
	defer w.filler.Catch(&err)
	defer trace.StartRegion(t.Ctx, "loader: piece of the first batch").End()
	w.filler.Join()
	err = c.setup.located(t.Ctx, b, w.filler.Fill(t.Ctx, b, lo, hi))
}

// seal completes a batch whose pieces several workers filled.
func (c *pool) seal(w *worker, t schedule.Task, b *fill.Batch) (err error) {
	defer w.filler.Catch(&err)
	return c.setup.located(t.Ctx, b, w.filler.Seal(t.Ctx, b))
}

// stuck describes a batch that is not finished after Options.Timeout: which record a worker is
// reading, and which function a Stage waits for. stuck must not wait itself: it does not look up
// the place of a ragged record, because that reads offsets from a file.
func (c *pool) stuck(epoch, step, slot int) error {
	late := fmt.Errorf("%w: not there after %v", ErrTimeout, c.setup.opts.Timeout)
	e := &Error{Epoch: epoch, Batch: step, Record: -1, Err: late}
	if slot < 0 {
		e.Err = fmt.Errorf("%w: not begun after %v", ErrTimeout, c.setup.opts.Timeout)
		return e
	}
	for _, w := range c.workers {
		at, f, record, on := w.filler.Progress()
		if at != slot || f < 0 {
			continue
		}
		if e.Err = late; on != "" {
			e.Err = fmt.Errorf("%w: %s", late, on)
		}
		e.Field, e.Record, e.Location = c.setup.plan.Fields[f].In.Name, record, ""
		if !c.setup.plan.Fields[f].In.Ragged { // whose place is to be read, which might hang too
			c.setup.place(e)
		}
	}
	return e
}

// errGoexit is the error of a batch whose user code neither returned nor panicked. It is set in
// advance, since no code after the call runs.
var errGoexit = errors.New("runtime.Goexit was called by the Source, a Transform or Collate")
