package loader

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Loader makes batches of a Source. One epoch is iterated at a time; everything else may
// be called by any goroutine.
type Loader struct {
	*setup
	scheduler

	workers    []*worker
	goroutines sync.WaitGroup

	// Of the goroutine that iterates.
	hands   *worker // makes batches there; nil if only workers do
	list    []*slot // that it makes together
	cuts    []*fill.Batch
	spinner spinner
	asked   time.Time // when the Source was last asked whether its files are whole
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
	ld := &Loader{setup: newSetup(src, can, opts, fields)}
	ld.scheduler.init(ld)
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

// now returns the time since New, which is never 0.
func (c *setup) now() time.Duration { return c.plan.Clock() }

// cores returns this process's share of the processor's cores.
func (c *setup) cores() int {
	return max(1, runtime.GOMAXPROCS(0)/max(1, c.opts.World.LocalSize))
}

// sequence returns the order of an epoch.
func (c *setup) sequence(epoch int) sampler.Sequence {
	return c.opts.Sampler.Epoch(c.src.Len(), c.opts.Seed, epoch)
}

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
	for id := range max(1, ld.opts.maxWorkers()) {
		w, err := ld.newWorker(id)
		if err != nil {
			return err
		}
		ld.workers = append(ld.workers, w)
	}
	var err error
	switch {
	case ld.opts.maxWorkers() == 0:
		ld.hands = ld.workers[0]
	case ld.views || ld.opts.fewest == 0:
		ld.hands, err = ld.newWorker(-1)
	}
	return err
}

// startLocked starts the workers, once.
func (ld *Loader) startLocked() {
	if ld.started || ld.opts.maxWorkers() == 0 {
		return
	}
	ld.started = true
	for _, w := range ld.workers {
		ld.goroutines.Go(func() { ld.run(w) })
	}
}

// Specs returns the fields that batches have, in their order, with the type and shape of one
// record: after Transforms, and with what Collate adds. It must not be changed.
func (ld *Loader) Specs() []tensor.Spec { return ld.specs }

// BatchSize returns the number of records of a batch of this process; the last one of an
// epoch may have fewer.
func (ld *Loader) BatchSize() int { return ld.opts.BatchSize }

// Batches returns the number of batches of an epoch: the same on every rank.
func (ld *Loader) Batches(epoch int) int {
	return ld.opts.shares().Steps(ld.sequence(epoch).Len())
}

// Close ends all goroutines and waits for them; an epoch that is being iterated then yields
// ErrClosed. Batches that are still kept are an error, which in checked builds names the
// lines that kept them; their memory stays valid until they are released. Close of a
// closed Loader does nothing and returns ErrClosed.
func (ld *Loader) Close() error {
	ld.mu.Lock()
	if ld.closed {
		ld.mu.Unlock()
		return ErrClosed
	}
	ld.closed = true
	ld.spare.Broadcast()
	err := ld.leaksLocked()
	if ld.pass != nil {
		ld.pass.failLocked(ErrClosed)
	}
	ld.work.Broadcast()
	ld.tellLocked()
	lost := ld.lost
	ld.mu.Unlock()
	if lost != nil {
		return errors.Join(err, fmt.Errorf("loader: close: a read still hangs, and its memory is not freed: %w", lost))
	}
	ld.goroutines.Wait()
	return errors.Join(err, ld.freeIfIdle())
}

// freeIfIdle frees the ring unless a batch still uses it; recycle does it then.
func (ld *Loader) freeIfIdle() error {
	ld.mu.Lock()
	idle := len(ld.free) == len(ld.slots)
	ld.mu.Unlock()
	if !idle {
		return nil
	}
	return ld.ring.Free()
}

// leaksLocked reports the batches that are kept.
func (ld *Loader) leaksLocked() error {
	if ld.kept == 0 {
		return nil
	}
	return fmt.Errorf("loader: close: %d kept batches were not released%s", ld.kept, ld.keepersLocked())
}

// keepersLocked lists where batches were kept, in checked builds.
func (ld *Loader) keepersLocked() string {
	var b strings.Builder
	for _, s := range ld.slots {
		if s.state == slotKept && s.keptAt != "" {
			fmt.Fprintf(&b, "\n\tbatch %d, kept at %s", s.step, s.keptAt)
		}
	}
	return b.String()
}
