package execute

import (
	"cmp"
	"context"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// ring is a bounded number of slots that go round. Workers draw the samples, one at a time, and fill slots with them in
// any order. The worker that fills the next slot in order commits it, and the filled slots that wait after it. So the
// result does not depend on the number of workers, and memory is bounded by the slots; if values have any length, no
// sample is drawn while the waiting slots take more than memory. Most records are committed by the worker that made
// them, while they are in the CPU's caches, and the worker continues in the same memory.
type ring struct {
	schema store.Schema
	memory int64
	commit func(*Slot) error
	free   chan *Slot // that no worker has

	source sync.Mutex
	pull   func() (source.Sample, error, bool)
	drawn  int64 // samples so far

	mu     sync.Mutex
	filled []*Slot   // that wait, see place
	held   int64     // bytes of those
	less   sync.Cond // held became less, or the run ends
	next   int64     // the number that is to be committed next
	busy   bool      // a worker commits, or nothing is committed any more
}

// aheadBytes is how much finished work may wait for an image that takes longer, at least
// two records a worker.
const aheadBytes = 64 << 20

// newRing returns a ring for that many workers, whose slots take no more than memory, if
// that is not 0. It commits by calls of commit, one after the other, from any goroutine.
func newRing(s store.Schema, workers int, memory int64, commit func(*Slot) error) *ring {
	memory = cmp.Or(memory, aheadBytes)
	n := ringSlots(s, workers, memory)
	r := &ring{schema: s, memory: memory, commit: commit, filled: make([]*Slot, n), free: make(chan *Slot, n)}
	r.less.L = &r.mu
	for range n {
		r.free <- new(Slot)
	}
	return r
}

// ringSlots returns how many slots a ring has: some ahead for each worker, fewer where
// records are large.
func ringSlots(s store.Schema, workers int, memory int64) int {
	memory = cmp.Or(memory, aheadBytes)
	return workers + int(min(max(memory/int64(s.RecordBytes()), int64(2*workers)), int64(32*workers)))
}

// Run sends all samples through the workers, which do one job, and commits one after the other by calls of commit, from
// any goroutine. Slots that wait take no more than memory, if that is not 0. It stops at the first error of the source,
// of a slot that is not of its sample alone, of commit, or at the end of ctx, whose cause it then returns. When it
// returns, no goroutine of it is left.
func Run(ctx context.Context, j *Job, workers int, memory int64, samples iter.Seq2[source.Sample, error],
	commit func(*Slot) error) error {
	all := make([]*Worker, workers)
	for i := range all {
		all[i] = NewWorker(j)
	}
	return newRing(j.Schema, workers, memory, commit).run(ctx, samples, all)
}

// run sends all samples through the workers and commits one after the other. It stops at the
// first error of the source, of a slot that is not of its sample alone, of commit, or at the end of ctx, whose
// cause it then returns. When it returns, no goroutine of it is left.
func (r *ring) run(ctx context.Context, samples iter.Seq2[source.Sample, error], workers []*Worker) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.less.Broadcast()
	})()
	var stop func()
	r.pull, stop = iter.Pull2(samples)
	defer stop()
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			if err := r.work(ctx, w); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// work fills slots until there are no more samples, or none are wanted. It has a slot before it
// draws a sample, so that the sample which is next to be committed never waits for one.
func (r *ring) work(ctx context.Context, w *Worker) (err error) {
	since := time.Now()
	for s := <-r.free; ; {
		if !r.room(ctx) || !r.draw(s) {
			return nil
		}
		r.fill(s, w)
		if s, err = r.finish(ctx, s); err != nil {
			return err
		}
		if s != nil {
			since = pause(since)
			continue
		}
		select {
		case s = <-r.free:
		case <-ctx.Done():
			return nil
		}
	}
}

// atOnce is how long a worker runs before it pauses. One that runs for 10 ms Go interrupts by
// a signal, and the thread that watches for this wakes more often: that costs a hundredth of the time
// that photos take.
const atOnce = 2 * time.Millisecond

// pause lets other goroutines run if none could since then, and returns since when none could.
func pause(since time.Time) time.Time {
	now := time.Now()
	if now.Sub(since) < atOnce {
		return since
	}
	runtime.Gosched()
	return now
}

// room waits until what waits to be committed leaves room for more. It reports false at the end of ctx.
func (r *ring) room(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ctx.Err() == nil && r.held > r.memory {
		r.less.Wait()
	}
	return ctx.Err() == nil
}

// draw gives s the next sample, or the error that ends the source. It reports whether there was
// one.
func (r *ring) draw(s *Slot) (ok bool) {
	r.source.Lock()
	defer r.source.Unlock()
	s.Sample, s.Err, ok = r.pull()
	s.number = r.drawn
	r.drawn++
	return ok
}

// fill makes the record of a sample.
func (r *ring) fill(s *Slot, w *Worker) {
	if s.Record == nil {
		s.Record = store.NewRecord(r.schema)
	}
	if s.Err == nil {
		w.Do(s)
	}
}

// finish enters a slot that is filled. Unless another worker does that, it then commits the next slots
// as long as they are filled. It returns mine if it is free again.
func (r *ring) finish(ctx context.Context, mine *Slot) (*Slot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filled[r.place(mine.number)] = mine
	r.held += mine.bytes()
	if r.busy {
		return nil, nil
	}
	r.busy = true
	for s := r.filled[r.place(r.next)]; s != nil; s = r.filled[r.place(r.next)] {
		r.mu.Unlock()
		held, err := r.settle(ctx, s)
		r.mu.Lock()
		r.settledLocked(s, held)
		if err != nil {
			return nil, err // busy for ever: nothing comes after it
		}
		if s != mine {
			r.free <- s
		}
	}
	r.busy = false
	if r.next <= mine.number {
		return nil, nil
	}
	return mine, nil
}

// settle commits the slot that is next, while others may enter theirs. It returns the bytes that the slot held.
func (r *ring) settle(ctx context.Context, s *Slot) (held int64, err error) {
	err = s.fatal()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = r.commit(s)
	}
	held = s.bytes()
	s.trim(r.schema, r.memory/int64(len(r.filled)))
	return held, err
}

// settledLocked takes out the slot that settle was called for.
func (r *ring) settledLocked(s *Slot, held int64) {
	if r.held > r.memory {
		r.less.Broadcast()
	}
	r.held -= held
	r.filled[r.place(s.number)] = nil
	r.next++
}

// place is where a number is in filled: those under way have one each.
func (r *ring) place(number int64) int64 { return number % int64(len(r.filled)) }
