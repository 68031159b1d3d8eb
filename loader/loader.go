package loader

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/uncounted"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Loader makes batches of a Source. One epoch is iterated at a time; everything else may
// be called by any goroutine.
type Loader struct {
	src       Source
	opts      Options
	fields    []field
	specs     []tensor.Spec // of batches
	viewable  bool          // all fields may be views
	mayView   bool          // the Allocator allows views
	made      time.Time
	uncounted bool         // no statistics are kept
	repeats   bool         // the Sampler may have a record more than once in an epoch
	can       Capabilities // of the Source
	identity  State        // of the start
	ragged    bool         // a field has records of different lengths
	ring      *ring
	slots     []*slot
	allValid  []bool // of a batch in which all records count
	workers   []*worker
	hands     *worker // of the loop, if it may make its batches itself

	news     news
	patience patience

	fetched   int64 // what the Source had from a network before
	fetchWait time.Duration

	mu         sync.Mutex
	work       sync.Cond // there may be a task: a slot came free, a pass began, or Close
	ready      sync.Cond // the consumer may go on: a batch is done, a worker is through, or the pass was cancelled
	free       []*slot
	window     []*slot // the tick t that is being filled or done is at t % len(window)
	pass       *pass   // being iterated; nil between loops
	at         position
	resumed    bool  // at is where a State said, and nothing was iterated since
	lost       error // why a pass was abandoned that still hangs
	alarm      *time.Timer
	kept       int
	active     int // workers that may begin a batch
	ahead      int // finished batches that may wait
	mostAhead  int // and how many the tuner may make them at most
	surplus    int // slots that were added and will end when they come free
	tuner      tuner
	started    bool // the goroutines run
	closed     bool
	stats      Stats
	waits      histogram
	goroutines sync.WaitGroup
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
	ld := &Loader{src: src, can: can, opts: opts, fields: fields, made: time.Now(), viewable: true, identity: opts.identify(src, can)}
	ld.mayView = allowsViews(opts.Allocator)
	ld.uncounted = uncounted.Next && opts.Timeout == 0 // which needs the time
	for i := range fields {
		ld.specs = append(ld.specs, fields[i].out)
		ld.viewable = ld.viewable && fields[i].viewable()
		if fields[i].in.Ragged {
			ld.ragged = true
		}
	}
	ld.repeats = sampler.Repeats(opts.Sampler)
	ld.fetched, ld.fetchWait, _ = can.NetworkStats()
	ld.work.L, ld.ready.L = &ld.mu, &ld.mu
	ld.stats.Cores = max(1, runtime.GOMAXPROCS(0)/max(1, opts.World.LocalSize))
	ld.makeSlots()
	if err := ld.makeWorkers(); err != nil {
		return nil, err
	}
	return ld, nil
}

// resolve returns o with its defaults, and what batches are made of.
func (o Options) resolve(src Source) (Options, []field, error) {
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
	if o.Budget > 0 && slices.ContainsFunc(fields, func(f field) bool { return f.ragged }) {
		o.MaxPrefetch = 0 // how much room their rows need is not known
	}
	o, err = o.fit(stride)
	return o, fields, err
}

// makeSlots makes the places of batches, without memory for them.
func (ld *Loader) makeSlots() {
	ld.ring = newRing(ld.opts.Allocator, ld.fields, ld.opts.BatchSize)
	ld.allValid = slices.Repeat([]bool{true}, ld.opts.BatchSize)
	ld.ahead, ld.mostAhead = ld.opts.Prefetch, ld.opts.MaxPrefetch
	ld.addSlots(ld.opts.slots())
	reach := maxReach
	if !ld.opts.Unordered {
		reach = max(ld.opts.mostSlots(), maxReach)
	}
	ld.window = make([]*slot, reach)
}

// addSlots adds up to n slots, and returns how many there was memory for.
func (ld *Loader) addSlots(n int) int {
	added := ld.ring.extend(n)
	for _, i := range added {
		s := newSlot(ld, i)
		ld.slots = append(ld.slots, s)
		ld.free = append(ld.free, s)
	}
	return len(added)
}

// makeWorkers makes the state of those who fill batches.
func (ld *Loader) makeWorkers() error {
	for id := range max(1, ld.opts.crew()) {
		w, err := ld.newWorker(id)
		if err != nil {
			return err
		}
		ld.workers = append(ld.workers, w)
	}
	ld.active = max(0, ld.opts.Workers)
	var err error
	switch {
	case ld.active == 0:
		ld.hands = ld.workers[0]
	case ld.inlines():
		ld.hands, err = ld.newWorker(-1)
	}
	return err
}

// start starts the workers, once. The caller holds mu.
func (ld *Loader) start() {
	if ld.started || ld.opts.crew() == 0 {
		return
	}
	ld.started = true
	for _, w := range ld.workers {
		ld.goroutines.Go(w.run)
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
	return ld.opts.batches(ld.sequence(epoch).Len())
}

func (ld *Loader) sequence(epoch int) sampler.Sequence {
	return ld.opts.Sampler.Epoch(ld.src.Len(), ld.opts.Seed, epoch)
}

// recycle makes a slot free again, or ends it if it is one too many. The caller owns it.
func (ld *Loader) recycle(s *slot) {
	s.clear()
	ld.mu.Lock()
	if s.kept {
		s.kept, s.keptAt = false, ""
		ld.kept--
	}
	s.done = false
	ends := ld.ends(s)
	if !ends {
		ld.free = append(ld.free, s)
		ld.cameFree()
	}
	last := ld.closed && len(ld.free) == len(ld.slots)
	ld.mu.Unlock()
	if ends {
		ld.ring.giveBack(s.index)
	}
	if last {
		ld.ring.free() // an unmapping that fails leaves memory mapped, which harms nobody
	}
}

// ends takes s out of the slots if it is one too many. The caller holds mu.
func (ld *Loader) ends(s *slot) bool {
	if ld.surplus == 0 || s.index < ld.opts.slots() {
		return false
	}
	ld.surplus--
	ld.slots = slices.DeleteFunc(ld.slots, func(other *slot) bool { return other == s })
	return true
}

// cameFree wakes a worker, if one is needed, for a slot. The caller holds mu.
func (ld *Loader) cameFree() {
	switch {
	case ld.pass != nil && ld.pass.inline:
	case ld.active < len(ld.workers):
		ld.work.Broadcast() // one alone might be a worker that may not begin
	default:
		ld.work.Signal()
	}
}

// Close ends all goroutines and waits for them; an epoch that is being iterated then yields
// ErrClosed. Batches that are still kept are an error, which in checked builds names the
// lines that kept them; their memory stays valid until they are released. Close of a
// closed Loader returns ErrClosed, and panics in checked builds.
func (ld *Loader) Close() error {
	ld.mu.Lock()
	if ld.closed {
		ld.mu.Unlock()
		if invariants.Enabled {
			panic("loader: Close of a closed Loader")
		}
		return ErrClosed
	}
	ld.closed = true
	err := ld.leaks()
	if ld.pass != nil {
		ld.pass.fail(ErrClosed)
	}
	ld.work.Broadcast()
	ld.tell()
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
	return ld.ring.free()
}

// leaks reports the batches that are kept. The caller holds mu.
func (ld *Loader) leaks() error {
	if ld.kept == 0 {
		return nil
	}
	return fmt.Errorf("loader: close: %d kept batches were not released%s", ld.kept, ld.keepers())
}

// keepers lists where batches were kept, in checked builds. The caller holds mu.
func (ld *Loader) keepers() string {
	var b strings.Builder
	for _, s := range ld.slots {
		if s.kept && s.keptAt != "" {
			fmt.Fprintf(&b, "\n\tbatch %d, kept at %s", s.step, s.keptAt)
		}
	}
	return b.String()
}
