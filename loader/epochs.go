package loader

import (
	"context"
	"fmt"
	"iter"
)

// Epoch returns the batches of one epoch for a range loop: in order, unless
// Options.Unordered. The number selects the permutation, together with Options.Seed; any
// number may come at any time and repeatedly. After Resume, the first epoch that is asked
// for begins in the middle, if it is the one that the State was taken in.
//
// If a batch cannot be made, or ctx is done, the loop body gets that error in place of the
// batch, and the loop ends.
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
// Leaving the inner loop gives up the rest of that epoch; an error ends the inner loop
// alone, so that a body which means to stop must leave both. No other epoch of this Loader
// can be iterated before the outer loop ends.
func (ld *Loader) Epochs(ctx context.Context, end int) iter.Seq2[int, iter.Seq2[Batch, error]] {
	return func(yield func(int, iter.Seq2[Batch, error]) bool) {
		l := epochsLoop{ld: ld, ctx: ctx, end: end}
		defer l.leave()
		for number := ld.State().Epoch; number < end; number++ {
			l.number, l.used = number, false
			if !yield(number, l.batches) {
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
	p      *pass // nil if none is under way
}

// batches is the inner loop.
func (l *epochsLoop) batches(yield func(Batch, error) bool) {
	if l.used {
		yield(Batch{}, fmt.Errorf("loader: epoch %d: its batches can be iterated once only", l.number))
		return
	}
	l.used = true
	if l.p != nil {
		l.ld.advance(l.p, l.end)
	} else {
		p, err := l.ld.begin(l.ctx, l.number, l.end, l.ld.goOn(l.number))
		if err != nil {
			yield(Batch{}, err)
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
	whole = l.ld.deliver(l.p, yield)
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
	return true
}
