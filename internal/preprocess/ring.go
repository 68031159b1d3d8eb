package preprocess

import (
	"context"
	"iter"
	"sync"

	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
)

// ring is a bounded number of slots that go round: the feeder puts samples into free ones,
// workers fill them in any order, and the committer takes them in the order of the source.
// So the result does not depend on the number of workers, and memory is that of the slots.
type ring struct {
	free  chan *slot
	todo  chan *slot // to workers
	order chan *slot // to the committer
}

// aheadBytes is how much finished work may wait for an image that takes longer, at least
// two records a worker.
const aheadBytes = 64 << 20

// newRing returns a ring for that many workers, whose slots take no more than memory, if
// that is not 0.
func newRing(s store.Schema, workers int, memory int64) *ring {
	n := ringSlots(s, workers, memory)
	r := &ring{make(chan *slot, n), make(chan *slot, n), make(chan *slot, n)}
	for range n {
		r.free <- &slot{record: store.NewRecord(s), done: make(chan struct{}, 1)}
	}
	return r
}

// ringSlots returns how many slots a ring has: some ahead for each worker, fewer where
// records are large.
func ringSlots(s store.Schema, workers int, memory int64) int {
	if memory == 0 {
		memory = aheadBytes
	}
	return workers + int(min(max(memory/int64(s.RecordBytes()), int64(2*workers)), int64(32*workers)))
}

// run sends all samples through the workers and calls commit, in the caller's goroutine,
// for one after the other. It stops at the first error of the source, of a slot that is
// fatal, of commit, or at the end of ctx, whose cause it then returns. When it returns, no
// goroutine of it is left.
func (r *ring) run(ctx context.Context, samples iter.Seq2[source.Sample, error], workers []*worker, commit func(*slot) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { r.feed(ctx, samples) })
	for _, w := range workers {
		wg.Go(func() { r.work(ctx, w) })
	}
	for s := range r.order {
		select {
		case <-s.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s.fatal != nil {
			return s.fatal
		}
		if err := commit(s); err != nil {
			return err
		}
		r.free <- s
	}
	return context.Cause(ctx)
}

// feed puts samples into free slots. No channel blocks but free, as each holds all slots.
func (r *ring) feed(ctx context.Context, samples iter.Seq2[source.Sample, error]) {
	defer close(r.order)
	defer close(r.todo)
	for sample, err := range samples {
		var s *slot
		select {
		case s = <-r.free:
		case <-ctx.Done():
			return
		}
		s.sample, s.fatal = sample, err
		r.order <- s
		if err != nil {
			s.done <- struct{}{}
			return
		}
		r.todo <- s
	}
}

func (r *ring) work(ctx context.Context, w *worker) {
	for s := range r.todo {
		if ctx.Err() != nil {
			return
		}
		w.do(s)
		s.done <- struct{}{}
	}
}
