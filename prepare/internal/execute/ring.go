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

// ring is a bounded number of slots that go round. Workers draw samples one at a time and fill slots with them, in
// any order of completion. The worker that fills the next slot in order commits it, and the filled slots after it.
// So records are committed in the order of the source whatever the number of workers, and memory is bounded by the
// slots. If values have any length, no sample is drawn either while filled slots hold more than memory. Most
// records are committed by the worker that made them, while they are in its cache, and the worker goes on in the
// same slot.
//
// source guards pull and drawn; mu guards the fields below it. busy is the token of the committing worker: it
// commits without holding mu.
type ring struct {
	schema store.Schema
	memory int64
	commit func(*Slot) error
	free   chan *Slot // slots that no worker has

	source sync.Mutex
	pull   func() (source.Sample, error, bool)
	drawn  int64 // number of samples drawn so far

	mu     sync.Mutex
	filled []*Slot   // by place: slots that are filled and not committed yet
	held   int64     // bytes of these slots
	less   sync.Cond // held became less, or ctx has ended
	next   int64     // number of the sample to commit next
	busy   bool      // a worker is committing; stays true after an error
}

// aheadBytes is the memory in bytes of finished records that may wait for a record that takes longer. Each
// worker may have at least two finished records in any case.
const aheadBytes = 64 << 20

// newRing returns a ring for a number of workers. Slots that wait take no more than memory bytes; 0 means
// aheadBytes. commit is called from any goroutine, but never concurrently.
func newRing(s store.Schema, workers int, memory int64, commit func(*Slot) error) *ring {
	memory = cmp.Or(memory, aheadBytes)
	n := ringSlots(s, workers, memory)
	r := &ring{schema: s, memory: memory, commit: commit, filled: make([]*Slot, n), free: make(chan *Slot, n)}
	// room waits for less while it holds mu.
	r.less.L = &r.mu
	for range n {
		r.free <- new(Slot)
	}
	return r
}

// ringSlots returns the number of slots of a ring: one for each worker, and 2 to 32 more for each, fewer if records
// are large.
func ringSlots(s store.Schema, workers int, memory int64) int {
	memory = cmp.Or(memory, aheadBytes)
	return workers + int(min(max(memory/int64(s.RecordBytes()), int64(2*workers)), int64(32*workers)))
}

// Run makes records of all samples in a number of workers, and commits them in the order of samples. commit is
// called from any goroutine, but never concurrently. Filled slots that wait take no more than memory bytes; 0 is a
// default. Run stops at the first error of the source, of commit, or of a slot if it is no SampleError, or at the
// end of ctx, whose cause it returns. When it returns, its goroutines have ended.
func Run(ctx context.Context, j *Job, workers int, memory int64, samples iter.Seq2[source.Sample, error],
	commit func(*Slot) error) error {
	all := make([]*Worker, workers)
	for i := range all {
		all[i] = NewWorker(j)
	}
	return newRing(j.Schema, workers, memory, commit).run(ctx, samples, all)
}

// run is Run for a ring and its workers. Broadcasting at the end of ctx wakes workers that wait for room.
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

// work fills slots until there are no more samples or ctx ends. A worker has a slot before it draws a sample:
// otherwise the sample to commit next could wait for a slot while all slots wait for it.
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

// atOnce is how long a worker runs before it yields. After 10 ms, Go would interrupt it by a signal, and the thread
// that watches for that would wake more often; together this costs one percent of the time of decoding photos.
const atOnce = 2 * time.Millisecond

// pause yields to other goroutines if the last yield, at the time since, was longer than atOnce ago. It returns the
// time of the latest yield.
func pause(since time.Time) time.Time {
	now := time.Now()
	if now.Sub(since) < atOnce {
		return since
	}
	runtime.Gosched()
	return now
}

// room waits until filled slots take no more than memory. It returns false at the end of ctx.
func (r *ring) room(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ctx.Err() == nil && r.held > r.memory {
		r.less.Wait()
	}
	return ctx.Err() == nil
}

// draw gives s the next sample, or the error that ends the source, and reports whether there was one. Numbers are
// assigned here, so they follow the order of the source.
func (r *ring) draw(s *Slot) (ok bool) {
	r.source.Lock()
	defer r.source.Unlock()
	s.Sample, s.Err, ok = r.pull()
	s.number = r.drawn
	r.drawn++
	return ok
}

// fill makes the record of the sample in s.
func (r *ring) fill(s *Slot, w *Worker) {
	if s.Record == nil {
		s.Record = store.NewRecord(r.schema)
	}
	if s.Err == nil {
		w.Do(s)
	}
}

// finish enters a filled slot. Unless another worker is committing, it then commits the next slots in order for as
// long as they are filled. It returns mine if the slot was committed here and is free again, and nil if the worker
// has to take another slot.
func (r *ring) finish(ctx context.Context, mine *Slot) (*Slot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The slot is entered even if another worker commits: that worker finds it when its turn comes.
	r.filled[r.place(mine.number)] = mine
	r.held += mine.bytes()
	if r.busy {
		return nil, nil
	}
	r.busy = true
	for s := r.filled[r.place(r.next)]; s != nil; s = r.filled[r.place(r.next)] {
		// Committing writes files, and must not keep other workers from entering their slots.
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
	// A slot before mine is not filled yet. Whoever fills it commits mine, too.
	if r.next <= mine.number {
		return nil, nil
	}
	return mine, nil
}

// settle commits the next slot, without r.mu, so that other workers can enter theirs. It returns the bytes that the
// slot held.
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

// settledLocked removes the slot that settle has committed.
func (r *ring) settledLocked(s *Slot, held int64) {
	if r.held > r.memory {
		r.less.Broadcast()
	}
	r.held -= held
	r.filled[r.place(s.number)] = nil
	r.next++
}

// place returns the position of a sample number in filled. Numbers of slots under way differ by less than the
// number of slots, so no two share a place.
func (r *ring) place(number int64) int64 { return number % int64(len(r.filled)) }
