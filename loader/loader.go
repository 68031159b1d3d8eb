package loader

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/internal/schedule"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Loader makes batches of a Source. One epoch is iterated at a time; everything else may
// be called by any goroutine.
type Loader struct {
	setup    *setup
	slots    *slots
	schedule *schedule.Schedule
	tally    *tally
	pool     *pool

	// Of the goroutine that iterates.
	hands     *hands                                     // makes batches there; nil if only workers do
	isInstant func(e *order.Epoch, step, steps int) bool // of them; nil if no batch is
	asked     time.Time                                  // when the Source was last asked whether its files are whole
}

// setup is what New settled. It never changes, so that every goroutine may read it.
type setup struct {
	src      Source
	can      Capabilities // of src
	opts     Options
	plan     *fill.Plan
	specs    []tensor.Spec // of batches
	views    bool          // loops may make batches that are views of warm memory themselves
	repeats  bool          // the Sampler may have a record more than once in an epoch
	identity State         // of the start
	ring     *memory.Ring
	created  time.Time

	// Bytes that the Source had fetched before.
	fetched   int64
	fetchWait time.Duration
}

// New returns a Loader of src. It reads nothing and starts no goroutine: the first epoch that
// needs some does. The error names everything that is wrong with opts. Close ends the Loader; src
// must stay open until then.
func New(src Source, opts Options) (*Loader, error) {
	can, err := CapabilitiesOf(src)
	if err != nil {
		return nil, fmt.Errorf("loader: source: %w", err)
	}
	opts, fields, err := opts.resolve(src)
	if err != nil {
		return nil, fmt.Errorf("loader: options: %w", err)
	}
	set := newSetup(src, can, opts, fields)
	ld := &Loader{setup: set, slots: &slots{plan: set.plan, ring: set.ring}, tally: newTally(set)}
	ld.pool = &pool{setup: set, slots: ld.slots}
	ld.schedule = schedule.New(schedule.Config{
		Slots: ld.slots, Clock: set.plan.Clock,
		Workers: max(0, opts.Workers), MinWorkers: max(0, opts.fewest), MaxWorkers: opts.maxWorkers(), Cores: cores(opts.World),
		Prefetch: opts.Prefetch, MaxPrefetch: opts.MaxPrefetch, Unordered: opts.Unordered, Timeout: opts.Timeout,
		Start: ld.pool.start, Stuck: ld.pool.stuck,
	})
	ld.pool.schedule = ld.schedule
	if err := ld.makeWorkers(); err != nil {
		return nil, err
	}
	return ld, nil
}

func newSetup(src Source, can Capabilities, opts Options, fields []fill.Field) *setup {
	c := &setup{
		src: src, can: can, opts: opts, repeats: sampler.Repeats(opts.Sampler),
		identity: opts.identify(src, can),
		ring:     memory.NewRing(opts.Allocator, opts.sizes(fields)),
		created:  time.Now(),
	}
	for i := range fields {
		c.specs = append(c.specs, fields[i].Out)
	}
	c.plan = c.newPlan(fields)
	c.views = c.inlines()
	c.fetched, c.fetchWait, _ = can.NetworkStats()
	return c
}

// newPlan returns what all batches have in common.
func (c *setup) newPlan(fields []fill.Field) *fill.Plan {
	o, created := &c.opts, c.created
	p := &fill.Plan{
		Source: c.can.source(c.src), Fields: fields, Batch: o.BatchSize, Seed: o.Seed,
		Clock:  func() time.Duration { return 1 + time.Since(created) },
		Policy: fill.Policy(o.OnError),
		Ring:   c.ring, Views: allowsViews(o.Allocator), RingRows: o.Allocator != nil,
		Budget: o.Budget, Slots: o.slots(), Stage: o.stage(fields, c.ring.Stride()),
		Workers: o.maxWorkers(), OneByOne: o.Timeout > 0,
	}
	if o.Report != nil {
		p.Report = func(ctx context.Context, b *fill.Batch, e *fill.Error) { o.Report(c.recordError(ctx, b, e)) }
	}
	p.Init()
	return p
}

// cores returns the share of the processor's cores of a process.
func cores(w World) int {
	return max(1, runtime.GOMAXPROCS(0)/max(1, w.LocalSize))
}

// sequence returns the order of an epoch.
func (c *setup) sequence(epoch int) sampler.Sequence {
	return c.opts.Sampler.Epoch(c.src.Len(), c.opts.Seed, epoch)
}

// epoch returns an epoch as this rank takes it.
func (c *setup) epoch(number int) *order.Epoch {
	return order.New(c.opts.shares(), number, c.sequence(number))
}

// batches returns the number of batches of an epoch.
func (c *setup) batches(epoch int) int { return c.opts.shares().Steps(c.sequence(epoch).Len()) }

// resolve returns o with its defaults, and what batches are made of.
func (o Options) resolve(src Source) (Options, []fill.Field, error) {
	o = o.withDefaults()
	fields, err := o.fields(src)
	if err := errors.Join(o.validate(), err); err != nil {
		return o, nil, err
	}
	if err := o.validateEpoch(src); err != nil {
		return o, nil, err
	}
	stride, err := o.stride(fields)
	if err != nil {
		return o, nil, err
	}
	if o.Budget > 0 && slices.ContainsFunc(fields, func(f fill.Field) bool { return f.Ragged }) {
		o.MaxPrefetch, o.MaxWorkers = 0, 0 // how much room their rows need is not known
	}
	o, err = o.fit(stride)
	return o, fields, err
}

// makeWorkers makes the state of those who fill batches.
func (ld *Loader) makeWorkers() error {
	set, pool := ld.setup, ld.pool
	for id := range max(1, set.opts.maxWorkers()) {
		w, err := pool.newWorker(id)
		if err != nil {
			return err
		}
		pool.workers = append(pool.workers, w)
	}
	switch {
	case set.opts.maxWorkers() == 0:
		ld.hands = &hands{pool: pool, worker: pool.workers[0]}
	case set.views || set.opts.fewest == 0:
		w, err := pool.newWorker(-1)
		if err != nil {
			return err
		}
		ld.hands = &hands{pool: pool, worker: w}
	}
	if set.views {
		ld.isInstant = ld.hands.worker.filler.IsInstant
	}
	return nil
}

// Specs returns the fields that batches have, in their order, with the type and shape of one
// record: after Transforms, and with what Collate adds. It must not be changed.
func (ld *Loader) Specs() []tensor.Spec { return ld.setup.specs }

// BatchSize returns the number of records of a batch of this process; the last one of an
// epoch may have fewer.
func (ld *Loader) BatchSize() int { return ld.setup.opts.BatchSize }

// Batches returns the number of batches of an epoch: the same on every rank.
func (ld *Loader) Batches(epoch int) int { return ld.setup.batches(epoch) }

// Close ends all goroutines and waits for them; an epoch that is being iterated then yields
// ErrClosed. Batches that are still kept are an error, which in checked builds names the
// lines that kept them; their memory stays valid until they are released. Close of a
// closed Loader does nothing and returns ErrClosed.
func (ld *Loader) Close() error {
	found, ok := ld.schedule.Close(ErrClosed)
	if !ok {
		return ErrClosed
	}
	var err error
	if len(found.Kept) > 0 {
		err = fmt.Errorf("loader: close: %d kept batches were not released%s", len(found.Kept), ld.slots.keptAt(found.Kept))
	}
	if found.Lost != nil {
		return errors.Join(err, fmt.Errorf("loader: close: a read still hangs, and its memory is not freed: %w", found.Lost))
	}
	ld.pool.goroutines.Wait()
	if ld.schedule.IsIdle() { // else the last Release frees the ring
		err = errors.Join(err, ld.setup.ring.Free())
	}
	return err
}
