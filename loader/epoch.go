package loader

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// epoch is one pass over the records, from the start of its loop to the end.
type epoch struct {
	ctx     context.Context // of the reads; done when the loop is left
	cancel  context.CancelCauseFunc
	unwatch func() bool // ends the wait for ctx
	number  int
	seq     Sequence
	records int // positions of seq that are used
	began   time.Time

	// Under Loader.mu.
	next    int   // step that the next free slot gets
	end     int   // steps from here on are not handed out
	deliver int   // step that the consumer gets next
	filling int   // workers that fill a slot
	cause   error // why the epoch was cancelled
}

// batches returns how many batches n records make.
func (o Options) batches(n int) int {
	if o.DropLast {
		return n / o.BatchSize
	}
	return (n + o.BatchSize - 1) / o.BatchSize
}

// Epoch returns the batches of one epoch, in order, for a range loop. The number selects
// the permutation, together with Options.Seed; any number may come at any time and
// repeatedly. If a batch cannot be made, or ctx is done, the loop body gets that error in
// place of the batch, and the loop ends.
func (ld *Loader) Epoch(ctx context.Context, number int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		e, err := ld.begin(ctx, number)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		var b Batch
		defer func() { ld.finish(e, b) }() // also if the body panics
		for range ld.opts.batches(e.records) {
			b, err = ld.take(e)
			if !yield(b, err) || err != nil {
				return
			}
			b.leave()
			b = Batch{}
		}
	}
}

// begin makes a new epoch the current one.
func (ld *Loader) begin(ctx context.Context, number int) (*epoch, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("loader: epoch %d: %w", number, context.Cause(ctx))
	}
	e := &epoch{number: number, seq: ld.sequence(number), began: time.Now()}
	e.records = e.seq.Len()
	e.end = ld.opts.batches(e.records)
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if ld.closed {
		return nil, ErrClosed
	}
	if ld.epoch != nil {
		return nil, fmt.Errorf("loader: epoch %d: %w", number, ErrBusy)
	}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	ld.epoch = e
	ld.stats.Epochs++
	ld.start()
	ld.work.Broadcast()
	e.unwatch = context.AfterFunc(e.ctx, func() { ld.cancelled(e) })
	return e, nil
}

// cancelled wakes a consumer that waits when the context of its epoch is done.
func (ld *Loader) cancelled(e *epoch) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	e.fail(context.Cause(e.ctx))
	ld.ready.Signal()
}

// fail ends the epoch for cause, unless it has ended for another. The caller holds mu.
func (e *epoch) fail(cause error) {
	if e.cause == nil {
		e.cause = cause
		e.end = e.next
		e.cancel(cause)
	}
}

// take waits for the next batch in order and hands it out.
func (ld *Loader) take(e *epoch) (Batch, error) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	at := e.deliver % len(ld.window)
	ld.await(e, at)
	s := ld.window[at]
	if e.cause == nil && s.err != nil && e.ctx.Err() != nil {
		e.fail(context.Cause(e.ctx)) // the worker saw it before cancelled did
	}
	switch {
	case e.cause == ErrClosed:
		return Batch{}, ErrClosed
	case e.cause != nil:
		return Batch{}, fmt.Errorf("loader: batch %d: %w", e.deliver, e.cause)
	case s.err != nil:
		return Batch{}, s.err
	}
	ld.window[at] = nil
	e.deliver++
	ld.count(e, s)
	return Batch{s, s.gen.Load()}, nil
}

// await returns when window[at] is done or the epoch was cancelled. The caller holds mu.
func (ld *Loader) await(e *epoch, at int) {
	done := func() bool { return e.cause != nil || ld.window[at] != nil && ld.window[at].done }
	if done() {
		return
	}
	since := time.Now()
	for !done() {
		ld.ready.Wait()
	}
	ld.stats.Wait += time.Since(since)
}

// count adds a batch to the statistics. The caller holds mu.
func (ld *Loader) count(e *epoch, s *slot) {
	if e.deliver == 1 {
		ld.stats.FirstBatch = time.Since(e.began)
	}
	ld.stats.Batches++
	ld.stats.Records += len(s.indices)
	ld.stats.ViewBytes += s.viewed
	ld.stats.CopiedBytes += s.copied
}

// finish ends the epoch: it cancels and awaits what is being filled, and frees all slots
// but those of kept batches. b is the batch of the loop body that was left, if any.
func (ld *Loader) finish(e *epoch, b Batch) {
	if b.s != nil {
		b.leave()
	}
	e.unwatch()
	ld.mu.Lock()
	e.fail(context.Canceled)
	for e.filling > 0 {
		ld.ready.Wait()
	}
	ld.mu.Unlock()
	for ; e.deliver < e.next; e.deliver++ {
		at := e.deliver % len(ld.window)
		s := ld.window[at]
		ld.window[at] = nil
		ld.recycle(s)
	}
	ld.mu.Lock()
	ld.epoch = nil
	ld.mu.Unlock()
}
