package loader

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
)

// Epoch returns the batches of one epoch for a range loop: in order, unless
// Options.Unordered. The number selects the permutation, together with Options.Seed; any
// number may come at any time and repeatedly. After Resume, the first epoch that is asked
// for begins in the middle, if it is the one that the State was taken in.
//
// If a batch cannot be made, or ctx is done, the loop body gets that error in place of the
// batch, and the loop ends. So it does behind the last batch if a file was truncated meanwhile
// (see [CheckedSource]).
func (ld *Loader) Epoch(ctx context.Context, number int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		p, err := ld.begin(ctx, number, number+1, ld.startOf(number))
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

// epochsLoop is one loop over Epochs.
type epochsLoop struct {
	ld     *Loader
	ctx    context.Context
	end    int
	number int   // of the epoch whose turn it is
	used   bool  // its batches were asked for
	failed bool  // an error was yielded, so that nothing follows
	p      *pass // nil if none is under way
}

// batches is the inner loop.
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
		l.ld.advance(l.p, l.end)
	} else {
		p, err := l.ld.begin(l.ctx, l.number, l.end, l.ld.goOn(l.number))
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

// leave ends the pass that is under way.
func (l *epochsLoop) leave() {
	if l.p != nil {
		l.ld.finish(l.p)
		l.p = nil
	}
}

// deliver yields the batches of the current epoch, and reports whether it came to the end.
func (ld *Loader) deliver(p *pass, yield func(Batch, error) bool) bool {
	var b Batch
	defer func() { b.leave() }() // also if the body panics
	for p.more() {
		var err error
		b, err = ld.take(p)
		if !yield(b, err) || err != nil {
			return false
		}
		b.leave()
		b = Batch{}
	}
	if err := ld.intact(); err != nil {
		yield(Batch{}, &Error{Epoch: p.parts[0].order.Number, Batch: -1, Record: -1, Err: err})
		return false
	}
	return true
}

// intact asks the Source for truncated files at the end of an epoch, at most every 50 ms: it is a system
// call for each file, and epochs may be short.
func (ld *Loader) intact() error {
	now := time.Now()
	if ld.can.Checked == nil || now.Sub(ld.asked) < 50*time.Millisecond {
		return nil
	}
	ld.asked = now
	return ld.can.Checked.Intact()
}

// part is one epoch of a pass, and the slice of it that this rank takes.
type part struct {
	order *order.Epoch
	steps int // batches
	from  int // step that comes first: not 0 after Resume
	first int // tick of that step
	taken ticks
}

// epoch returns the order of an epoch, as this rank takes it.
func (c *setup) epoch(number int) *order.Epoch {
	return order.New(c.opts.shares(), number, c.sequence(number))
}

// part returns epoch number, to be delivered from a step on.
func (c *setup) part(number, from int) *part {
	e := c.epoch(number)
	return &part{order: e, steps: max(from, e.Steps), from: from}
}

// end returns the tick after the last of the part.
func (t *part) end() int { return t.first + t.steps - t.from }

// step returns the number of the batch that has a tick.
func (t *part) step(tick int) int { return tick - t.first + t.from }

// maxDisplacement is how far Unordered lets a batch be delivered before an earlier one: that many
// bits are in a State.
const maxDisplacement = 64

// ticks is a set of the ticks from the first one on that was not delivered.
type ticks uint64

func (t ticks) has(i int) bool { return i < maxDisplacement && t>>i&1 == 1 }
func (t *ticks) add(i int)     { *t |= 1 << i }

// shift makes what was i+1 be i.
func (t *ticks) shift() { *t >>= 1 }
