package loader

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/internal/schedule"
	"github.com/penstock/penstock/tensor"
)

// Loader builds batches from a Source. One epoch is iterated at a time; everything else may be
// called by any goroutine.
//
// setup never changes. slots, schedule, tally and pool have locks of their own, and no lock is held
// while records are read.
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
		Workers: max(0, opts.Workers), MinWorkers: max(0, opts.fewest), MaxWorkers: opts.maxWorkers(),
		Cores:    cores(opts.World),
		Prefetch: opts.Prefetch, Unordered: opts.Unordered, Timeout: opts.Timeout,
		Start: ld.pool.start, Stuck: ld.pool.stuck,
	})
	ld.pool.schedule = ld.schedule
	if err := ld.makeWorkers(); err != nil {
		return nil, err
	}
	return ld, nil
}

// makeWorkers makes the state of all workers and of the loop that may make batches itself. All of
// this state is made in New, although no goroutine starts yet: an error in a Transform's Worker
// belongs to New, not to the first epoch.
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

// Specs returns the fields of batches in their order, with the type and shape of one record: after
// Transforms, and including fields that Collate adds. The slice is the Loader's own and must not be
// changed.
func (ld *Loader) Specs() []tensor.Spec { return ld.setup.specs }

// Batches returns the number of batches of an epoch: the same on every rank, unless the World's Last is LastUneven.
func (ld *Loader) Batches(epoch int) int { return ld.setup.batches(epoch) }

// Close ends all goroutines and waits for them; an epoch that is being iterated then yields
// ErrClosed. Batches that are still kept are an error, which in checked builds names the lines that
// kept them. The memory of kept batches stays valid until they are released: the last Release frees
// the ring. Close of a closed Loader does nothing and returns ErrClosed.
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
