package loader

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// setup is the configuration that New resolved. Only order ever changes, and it is an atomic
// pointer to an immutable value, so that every goroutine reads a setup without a lock. SetWeights
// replaces the order, and epochs that have begun keep the old order.
type setup struct {
	src      Source
	can      Capabilities // optional interfaces of src
	opts     Options
	plan     *fill.Plan
	specs    []tensor.Spec // fields of batches
	views    bool          // loops may make batches that are views of warm memory themselves
	repeats  bool          // the Sampler may have a record more than once in an epoch
	identity State         // State at the start of the run
	ring     *memory.Ring
	created  time.Time
	chunks   chunkOrder
	order    atomic.Pointer[weighted] // Sampler of epochs that begin

	// Bytes that the Source had fetched before.
	fetched   int64
	fetchWait time.Duration
}

// weighted is the Sampler of the epochs that begin, with the weights that SetWeights has set.
type weighted struct {
	sampler.Sampler
	weights []sampler.MixWeights
}

func newSetup(src Source, can Capabilities, opts Options, fields []fill.Field) *setup {
	c := &setup{
		src: src, can: can, opts: opts, repeats: sampler.Repeats(opts.Sampler),
		identity: opts.identify(src, can),
		ring:     memory.NewRing(opts.Allocator, opts.sizes(fields)),
		created:  time.Now(),
	}
	c.order.Store(&weighted{Sampler: opts.Sampler})
	for i := range fields {
		c.specs = append(c.specs, fields[i].Out)
	}
	c.plan = c.newPlan(fields)
	c.views = c.inlines()
	c.fetched, c.fetchWait, _ = can.NetworkStats()
	if can.Chunks != nil {
		c.chunks.before = can.Chunks.Decoded()
	}
	return c
}

// newPlan returns the configuration that all batches share. The clock never returns 0, which stands
// for "not read yet".
func (c *setup) newPlan(fields []fill.Field) *fill.Plan {
	o, created := &c.opts, c.created
	p := &fill.Plan{
		Source: c.can.source(c.src), Fields: fields, Batch: o.BatchSize, Seed: o.Seed,
		Clock:  func() time.Duration { return 1 + time.Since(created) },
		Policy: fill.Policy(o.OnError),
		Ring:   c.ring, Views: allowsViews(o.Allocator), Shows: allowsView(o.Allocator), RingRows: o.Allocator != nil,
		Budget: o.Budget, Slots: o.slots(), Stage: o.stage(fields, c.ring.Stride()),
		Workers: o.maxWorkers(), OneByOne: o.Timeout > 0,
	}
	if o.Report != nil {
		p.Report = func(ctx context.Context, b *fill.Batch, e *fill.Error) { o.Report(c.recordError(ctx, b, e)) }
	}
	p.Init()
	return p
}

// cores returns this process's share of the machine's cores. Processes of one host share its cores,
// unless they are bound to cores of their own.
func cores(w World) int {
	return max(1, runtime.GOMAXPROCS(0)/max(1, w.LocalSize))
}

// sequence returns the order of an epoch over all ranks.
func (c *setup) sequence(epoch int) sampler.Sequence {
	return c.order.Load().Epoch(c.src.Len(), c.opts.Seed, epoch)
}

// epoch returns the part of an epoch that this rank takes.
func (c *setup) epoch(number int) *order.Epoch {
	return order.New(c.opts.shares(), number, c.sequence(number))
}

// batches returns the number of batches of an epoch.
func (c *setup) batches(epoch int) int { return c.epoch(epoch).Steps }

// resolve returns o with its defaults, and the fields of batches. With a Budget and ragged fields
// the search for a number of workers is off: each worker it tries would need room for rows of
// unknown size.
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
		o.most = 0 // how much room their rows need is not known
	}
	o, err = o.fit(stride)
	return o, fields, err
}

// inlines reports whether the goroutine of the loop may build batches itself, without a worker. That
// pays off if batches can be views of memory: to hand such a batch over from a worker's goroutine
// costs more than to make it. With a Timeout a worker must build every batch, since a goroutine that
// hangs cannot notice that.
func (c *setup) inlines() bool {
	return c.plan.Viewable() && c.opts.Collate.Worker == nil && c.opts.Timeout == 0
}
