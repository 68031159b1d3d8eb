package loader

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/tensor"
)

// Loader makes batches of a Source. One epoch is iterated at a time; everything else may
// be called by any goroutine.
type Loader struct {
	src    Source
	opts   Options
	specs  []tensor.Spec // the fields of a batch
	bytes  []int         // of one record of each field
	pieces contiguity    // nil if every run of the Source is one piece
	warmer warmer        // nil if memory of the Source needs no warming
	ring   *ring
	slots  []*slot

	mu      sync.Mutex
	work    sync.Cond // there may be a step for a worker: a slot came free, an epoch began, or Close
	ready   sync.Cond // the consumer may go on: a batch is done, a worker is through, or the epoch was cancelled
	free    []*slot
	window  []*slot // the step s that is being filled or done is at s % len(window)
	epoch   *epoch  // being iterated; nil between epochs
	kept    int
	started bool // the workers run
	closed  bool
	stats   Stats
	workers sync.WaitGroup
}

// New returns a Loader of src. It reads nothing and starts no goroutine: the first epoch
// does. The error names everything that is wrong with opts. Close ends the Loader; src
// must stay open until then.
func New(src Source, opts Options) (*Loader, error) {
	opts = opts.withDefaults()
	specs, err := opts.validate(src)
	if err != nil {
		return nil, err
	}
	n := opts.slots()
	ld := &Loader{
		src: src, opts: opts, specs: specs,
		ring:   newRing(specs, opts.BatchSize, n),
		free:   make([]*slot, 0, n),
		window: make([]*slot, n),
	}
	ld.pieces, _ = src.(contiguity)
	ld.warmer, _ = src.(warmer)
	ld.work.L, ld.ready.L = &ld.mu, &ld.mu
	for _, s := range specs {
		ld.bytes = append(ld.bytes, s.RecordBytes())
	}
	for i := range n {
		ld.slots = append(ld.slots, newSlot(ld, i))
	}
	ld.free = append(ld.free, ld.slots...)
	return ld, nil
}

// Batches returns the number of batches of an epoch.
func (ld *Loader) Batches(epoch int) int {
	return ld.opts.batches(ld.sequence(epoch).Len())
}

func (ld *Loader) sequence(epoch int) Sequence {
	return ld.opts.Order.Epoch(ld.src.Len(), ld.opts.Seed, epoch)
}

// recycle makes a slot free again. The caller owns it.
func (ld *Loader) recycle(s *slot) {
	s.clear()
	ld.mu.Lock()
	if s.kept {
		s.kept, s.keptAt = false, ""
		ld.kept--
	}
	s.done = false
	ld.free = append(ld.free, s)
	ld.work.Signal()
	last := ld.closed && len(ld.free) == len(ld.slots)
	ld.mu.Unlock()
	if last {
		ld.ring.free() // an unmapping that fails leaves memory mapped, which harms nobody
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
	if ld.epoch != nil {
		ld.epoch.fail(ErrClosed)
	}
	ld.work.Broadcast()
	ld.ready.Broadcast()
	ld.mu.Unlock()
	ld.workers.Wait()
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

// Stats counts what a Loader did since New.
type Stats struct {
	Epochs      int           // begun
	Batches     int           // handed to the consumer
	Records     int           // in those
	ViewBytes   int64         // of those, the bytes that are views of the Source
	CopiedBytes int64         // and the bytes that were copied
	Wait        time.Duration // that the consumer waited for batches, in all
	FirstBatch  time.Duration // from the start of the latest epoch to its first batch
	RingBytes   int           // memory of the buffers; 0 as long as nothing is copied
	Kept        int           // batches kept now
}

// Stats returns the counts so far. It may be called during an epoch.
func (ld *Loader) Stats() Stats {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	st := ld.stats
	st.Kept = ld.kept
	st.RingBytes = ld.ring.bytes()
	return st
}
