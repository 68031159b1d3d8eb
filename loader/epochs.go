package loader

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/internal/schedule"
)

// Epoch returns the batches of one epoch for a range loop: in order, unless
// Options.Unordered. The number selects the permutation, together with Options.Seed; any
// number may come at any time and repeatedly. After Resume, the first epoch that is asked
// for begins in the middle, if it is the epoch in which the State was taken.
//
// If a batch cannot be made, or ctx is done, the loop body gets that error in place of the
// batch, and the loop ends. The same happens after the last batch if a file was truncated
// meanwhile (see [CheckedSource]).
func (ld *Loader) Epoch(ctx context.Context, number int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		p, err := ld.begin(ctx, number, number+1, resumed)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		defer ld.finish(p)
		ld.deliver(p, yield)
	}
}

// Epochs returns epochs, each as its number and the batches for an inner loop, from where
// the Loader is (see State) up to, but not including, epoch end. While the last batches of
// an epoch are used, the first of the next are filled.
//
//	for epoch, batches := range ld.Epochs(ctx, 10) {
//		for b, err := range batches {
//			...
//		}
//	}
//
// Leaving the inner loop gives up the rest of that epoch; an error ends both loops. No other epoch
// of this Loader can be iterated before the outer loop ends.
func (ld *Loader) Epochs(ctx context.Context, end int) iter.Seq2[int, iter.Seq2[Batch, error]] {
	return func(yield func(int, iter.Seq2[Batch, error]) bool) {
		l := epochsLoop{ld: ld, ctx: ctx, end: end}
		defer l.leave()
		for number := ld.State().Epoch; number < end; number++ {
			l.number, l.used = number, false
			if !yield(number, l.batches) || l.failed {
				return
			}
			if !l.used {
				l.leave()
			}
		}
	}
}

// epochsLoop is the state of one loop over Epochs. It belongs to the goroutine that ranges. One
// pass serves several inner loops, so that workers fill the next epoch while the last batches of
// the current epoch are used.
type epochsLoop struct {
	ld     *Loader
	ctx    context.Context
	end    int
	number int   // epoch whose turn it is
	used   bool  // the epoch's batches were asked for
	failed bool  // an error was yielded, so that nothing follows
	p      *pass // nil if none is under way
}

// batches is the inner loop over one epoch. The deferred leave ends the pass if the body breaks,
// panics or gets an error: the workers must not fill batches that nobody will take.
func (l *epochsLoop) batches(yield func(Batch, error) bool) {
	if l.used {
		yield(Batch{}, fmt.Errorf("loader: epoch %d: its batches can be iterated once only", l.number))
		return
	}
	l.used = true
	deliver := func(b Batch, err error) bool {
		l.failed = err != nil
		return yield(b, err)
	}
	if l.p != nil {
		l.p.advance(l.ld.setup, l.end)
	} else {
		p, err := l.ld.begin(l.ctx, l.number, l.end, anywhere)
		if err != nil {
			deliver(Batch{}, err)
			return
		}
		l.p = p
	}
	whole := false
	defer func() {
		if !whole {
			l.leave()
		}
	}()
	whole = l.ld.deliver(l.p, deliver)
}

// leave ends the pass, if one is active.
func (l *epochsLoop) leave() {
	if l.p != nil {
		l.ld.finish(l.p)
		l.p = nil
	}
}

// deliver yields the batches of the current epoch, and reports whether it reached the end. The
// deferred leave frees the batch in the loop body even if the body panics.
func (ld *Loader) deliver(p *pass, yield func(Batch, error) bool) bool {
	var b Batch
	defer func() { b.leave() }() // also if the body panics
	for p.loop.More() {
		var err error
		b, err = ld.take(p)
		if !yield(b, err) || err != nil {
			return false
		}
		b.leave()
		b = Batch{}
	}
	if err := ld.intact(); err != nil {
		epoch, _ := p.loop.Epoch()
		yield(Batch{}, &Error{Epoch: epoch.Number, Batch: -1, Record: -1, Err: err})
		return false
	}
	return true
}

// take waits for the next batch and hands it out. If the loop makes its own batches, they are made
// here, in the consumer's goroutine.
func (ld *Loader) take(p *pass) (Batch, error) {
	now := ld.setup.plan.Clock()
	p.loop.Look(ld.isInstant)
	made := time.Duration(0)
	if ld.hands != nil {
		made = ld.hands.make(p.loop, now)
	}
	given, err := p.loop.Take(now, made)
	if err != nil {
		return Batch{}, p.located(err)
	}
	s := ld.slots.at(given.Slot)
	ld.tally.count(s.batch, given.Inline)
	return Batch{ld, s, s.gen.Load()}, nil
}

// intact asks the Source for truncated files at the end of an epoch: bytes beyond the new end of a
// mapped file read as zeros up to the end of its page, without any fault. The check costs a system
// call per file and epochs may be short, so that it is made at most every 50 ms.
func (ld *Loader) intact() error {
	now := time.Now()
	if ld.setup.can.Checked == nil || now.Sub(ld.asked) < 50*time.Millisecond {
		return nil
	}
	ld.asked = now
	return ld.setup.can.Checked.Intact()
}

// pass is one loop over batches, of one epoch or of several, from its start to its end. It belongs
// to the goroutine that iterates; scouts are the goroutines that the pass started and must await.
type pass struct {
	loop   *schedule.Loop
	last   *order.Epoch // that the loop knows of
	reads  reads
	scouts sync.WaitGroup
}

// reads counts what was read since a loop began, for the schedule's decision whether storage limits
// the loop.
type reads struct {
	tally *tally
	pool  *pool
	start resources
}

// FromStorage reports whether most of the bytes came from storage.
func (r *reads) FromStorage() bool { return r.tally.fromStorage(r.start, r.pool.cost().Bytes) }

// beginning says which epochs may begin in the middle, at the Loader's position.
type beginning int

const (
	resumed  beginning = iota // there after Resume, and else at the first batch
	anywhere                  // there
)

// begin starts a new pass over the epochs from number up to end. A second pass of the same Loader
// is refused by the schedule with ErrBusy.
func (ld *Loader) begin(ctx context.Context, number, end int, where beginning) (*pass, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("loader: epoch %d: %w", number, context.Cause(ctx))
	}
	at, isResumed := ld.schedule.At()
	if at.Epoch != number || where == resumed && !isResumed {
		at = schedule.Position{Epoch: number}
	}
	p := &pass{last: ld.setup.epoch(number), reads: reads{ld.tally, ld.pool, used()}}
	plan := schedule.Plan{First: p.last, From: at, Reads: &p.reads}
	if number+1 < end {
		p.last = ld.setup.epoch(number + 1)
		plan.Next = p.last
	}
	p.loop = ld.schedule.NewLoop(plan)
	p.loop.Look(ld.isInstant)
	if err := p.loop.Begin(ctx); err == ErrClosed {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("loader: epoch %d: %w", number, err)
	}
	ld.tally.enter(p.reads.start)
	if ld.setup.can.LookaheadBytes() > 0 {
		ctx := p.loop.Context()
		p.scouts.Go(func() { ld.setup.scout(ctx, p.loop) })
	}
	return p, nil
}

// advance moves the pass to its next epoch, whose first batches the workers may have filled
// already, and tells the schedule which epoch comes after.
func (p *pass) advance(c *setup, end int) {
	if p.last.Number+1 >= end {
		p.loop.Advance(nil)
		return
	}
	p.last = c.epoch(p.last.Number + 1)
	p.loop.Advance(p.last)
}

// finish ends a pass. It cancels the batches that are being filled, waits for them, and frees all
// slots except the slots of kept batches. Nothing of this pass reads the Source afterwards, so that
// the caller may close the Source. If a read hangs beyond Options.Timeout, finish returns without
// it.
func (ld *Loader) finish(p *pass) {
	ld.tally.leave()
	if p.loop.Finish() {
		p.scouts.Wait()
		p.loop.Sweep()
	}
}

// located returns the cause of a pass's end with the number of the batch.
func (p *pass) located(cause error) error {
	if _, ok := cause.(*Error); ok || cause == ErrClosed {
		return cause
	}
	_, step := p.loop.Epoch()
	return fmt.Errorf("loader: batch %d: %w", step, cause)
}
