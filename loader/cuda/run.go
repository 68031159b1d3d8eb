package cuda

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/loader"
)

// run is one loop over batches: a goroutine that copies, and the consumer. The goroutine ends
// before the loop is left, so that nothing reads the Loader's memory afterwards.
type run struct {
	p      *Prefetcher
	ctx    context.Context
	cancel context.CancelCauseFunc
	ready  chan item    // closed at the end; has room for everything, so that nobody waits to send
	held   []hold       // batches of the Loader that are being copied
	given  atomic.Int64 // epochs up to this one were given up
}

// item is what the goroutine hands to the consumer: a batch, an error, or the end of an epoch.
type item struct {
	s     *slot
	state loader.State // after this batch
	err   error
	end   bool
}

// hold is a batch of the Loader that must stay valid until the slot's copies have read its memory.
type hold struct {
	b loader.Batch
	s *slot
}

func newRun(ctx context.Context, p *Prefetcher) *run {
	r := &run{p: p, ready: make(chan item, len(p.lanes)*(p.opts.Prefetch+1)+2)}
	r.given.Store(math.MinInt64)
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

// produce copies the batches of one epoch, and reports whether it reached the end.
func (r *run) produce(batches iter.Seq2[loader.Batch, error]) bool {
	defer r.releaseHeld()
	for b, err := range batches {
		if err == nil && int64(b.Epoch()) <= r.given.Load() {
			break
		}
		if err == nil {
			err = r.forward(b)
		}
		if err != nil {
			r.ready <- item{err: err}
			return false
		}
	}
	return true
}

// forward copies one batch to a slot of its device and hands the slot to the consumer.
func (r *run) forward(b loader.Batch) error {
	l := r.p.lanes[b.Step()%len(r.p.lanes)]
	s, err := r.slot(l)
	if err != nil {
		return err
	}
	if err := s.load(r.ctx, b); err != nil {
		l.free <- s
		return err
	}
	borrows := s.borrows // the consumer owns s from here on
	r.ready <- item{s: s, state: r.p.ld.State()}
	if !borrows {
		return nil
	}
	return r.hold(b, s)
}

// slot waits for a free slot of a device.
func (r *run) slot(l *lane) (*slot, error) {
	select {
	case s := <-l.free:
		return s, nil
	default:
	}
	defer r.p.took(&r.p.stats.SlotWait, time.Now())
	select {
	case s := <-l.free:
		return s, nil
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

// hold keeps b until its copies are done. As many batches are held as there are devices. The oldest
// is awaited only after the copies of b are queued, so that the bus is never idle. If the Loader
// cannot keep b, the copies of b itself are awaited.
func (r *run) hold(b loader.Batch, s *slot) error {
	if len(r.held) == len(r.p.lanes) {
		if err := r.releaseOldest(); err != nil {
			return errors.Join(err, r.awaitCopy(s))
		}
	}
	if b.Keep() != nil {
		return r.awaitCopy(s)
	}
	r.held = append(r.held, hold{b, s})
	return nil
}

// releaseOldest returns the batch that was held longest to the Loader.
func (r *run) releaseOldest() error {
	h := r.held[0]
	r.held = append(r.held[:0], r.held[1:]...)
	err := r.awaitCopy(h.s)
	h.b.Release()
	return err
}

// releaseHeld returns all held batches to the Loader.
func (r *run) releaseHeld() {
	for len(r.held) > 0 {
		if err := r.releaseOldest(); err != nil {
			r.p.fail(err)
		}
	}
}

// awaitCopy waits until nothing reads the memory that s was loaded from. The slot may hold a later
// batch by then: waiting for the later batch takes longer, and is just as correct.
func (r *run) awaitCopy(s *slot) error {
	defer r.p.took(&r.p.stats.CopyWait, time.Now())
	return s.settle(s.copied)
}

// next waits for the next item. ok is false at the end of the loop.
func (r *run) next() (it item, ok bool) {
	select {
	case it, ok = <-r.ready:
	default:
		began := time.Now()
		it, ok = <-r.ready
		r.p.took(&r.p.stats.Wait, began)
	}
	if err := r.failed(ok); err != nil {
		r.drop(it)
		return item{err: err}, true
	}
	return it, ok
}

// failed returns why the loop cannot continue: an error that was kept for it, or the end of its
// context.
func (r *run) failed(more bool) error {
	if err := r.p.takeFault(); err != nil {
		return err
	}
	if more && r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// drop frees the slot of an item that nobody will receive.
func (r *run) drop(it item) {
	if it.s != nil {
		it.s.lane.free <- it.s
	}
}

// deliver yields the batches of one epoch, and reports whether it reached the end.
func (r *run) deliver(yield func(Batch, error) bool) bool {
	for {
		it, ok := r.next()
		switch {
		case !ok || it.end:
			return ok
		case it.err != nil:
			yield(Batch{}, it.err)
			return false
		case !r.give(it, yield):
			return false
		}
	}
}

// give hands a batch to the loop body, and ends the batch with the body.
func (r *run) give(it item, yield func(Batch, error) bool) bool {
	p := r.p
	p.mu.Lock()
	p.state = it.state
	p.stats.Batches++
	p.stats.Records += len(it.s.indices)
	p.mu.Unlock()
	b := it.s.begin()
	defer b.leave() // also if the body panics
	return yield(b, nil)
}

// finish ends the goroutine and frees the batches that it had ready. Errors of batches that nobody
// wanted are dropped, except errors of the driver, after which later loops fail too.
func (r *run) finish() {
	r.cancel(context.Canceled)
	for it := range r.ready {
		r.drop(it)
		if call := (*Error)(nil); errors.As(it.err, &call) {
			r.p.fail(it.err)
		}
	}
	r.p.end()
}

// Epoch returns the batches of one epoch on the devices, for a range loop: the batches of
// the Loader's Epoch with that number, in the same order. A batch is valid in the loop body
// that receives it, for longer by Keep.
//
// If a batch cannot be made, or ctx is done, the loop body gets that error in place of the
// batch, and the loop ends. Once the loop is left, however that is, no copy from the host
// is under way.
func (p *Prefetcher) Epoch(ctx context.Context, number int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		r, err := p.begin(ctx)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		defer r.finish()
		go func() {
			defer close(r.ready)
			r.produce(p.ld.Epoch(r.ctx, number))
		}()
		r.deliver(yield)
	}
}
