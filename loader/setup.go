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

// setup is the configuration that New resolved. It never changes but for order, so that every goroutine may read it.
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
	chunks   chunkOrder
	order    atomic.Pointer[weighted] // of epochs that begin

	// Bytes that the Source had fetched before.
	fetched   int64
	fetchWait time.Duration
}

// weighted is a Sampler with weights that were set after New.
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

// newPlan returns what all batches have in common.
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

// cores returns a process's share of the CPU's cores.
func cores(w World) int {
	return max(1, runtime.GOMAXPROCS(0)/max(1, w.LocalSize))
}

// sequence returns the order of an epoch.
func (c *setup) sequence(epoch int) sampler.Sequence {
	return c.order.Load().Epoch(c.src.Len(), c.opts.Seed, epoch)
}

// epoch returns an epoch as this rank takes it.
func (c *setup) epoch(number int) *order.Epoch {
	return order.New(c.opts.shares(), number, c.sequence(number))
}

// batches returns the number of batches of an epoch.
func (c *setup) batches(epoch int) int { return c.epoch(epoch).Steps }

// resolve returns o with its defaults, and the fields of batches.
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

// inlines reports whether loops may build batches themselves: a batch of warm views is cheaper to
// build than to hand from one goroutine to another. With a Timeout, another goroutine must build
// them, so that they can be watched.
func (c *setup) inlines() bool {
	return c.plan.Viewable() && c.opts.Collate.Worker == nil && c.opts.Timeout == 0
}
