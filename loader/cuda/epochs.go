package cuda

import (
	"context"
	"iter"
)

// Epochs returns epochs, each as its number and the batches for an inner loop, from where
// the Loader is up to, but not including, epoch end: as the Loader's Epochs. While the last
// batches of an epoch are used, the first of the next are copied. Leaving the inner loop
// gives up the rest of that epoch; an error ends both loops.
func (p *Prefetcher) Epochs(ctx context.Context, end int) iter.Seq2[int, iter.Seq2[Batch, error]] {
	return func(yield func(int, iter.Seq2[Batch, error]) bool) {
		r, err := p.begin(ctx)
		if err != nil {
			yield(p.State().Epoch, func(body func(Batch, error) bool) { body(Batch{}, err) })
			return
		}
		defer r.finish()
		first := p.ld.State().Epoch
		go r.produceAll(end)
		for number := first; number < end; number++ {
			e := epochLoop{r: r, number: number, err: err}
			if !yield(number, e.batches) || e.dead {
				return
			}
			err = e.skip()
		}
		if err != nil && ctx.Err() == nil {
			p.fail(err)
		}
	}
}

// produceAll copies the batches of all epochs, with a mark after each epoch.
func (r *run) produceAll(end int) {
	defer close(r.ready)
	for _, batches := range r.p.ld.Epochs(r.ctx, end) {
		if !r.produce(batches) {
			return
		}
		select {
		case r.ready <- item{end: true}:
		case <-r.ctx.Done():
			return
		}
	}
}

// epochLoop is the inner loop of Epochs over one epoch.
type epochLoop struct {
	r      *run
	number int
	err    error // to yield in place of the epoch
	ended  bool  // its mark was seen
	dead   bool  // an error was yielded, so that nothing follows
}

func (e *epochLoop) batches(yield func(Batch, error) bool) {
	if e.ended || e.dead {
		return
	}
	if e.err != nil {
		e.dead = true
		yield(Batch{}, e.err)
		return
	}
	e.ended = e.r.deliver(func(b Batch, err error) bool {
		e.dead = err != nil
		return yield(b, err)
	})
}

// skip gives up the rest of the epoch. The goroutine that copies is told by r.given, and batches
// that it has copied already are dropped. The error says why there is no next epoch.
func (e *epochLoop) skip() error {
	e.r.given.Store(int64(e.number))
	for !e.ended && e.err == nil {
		it, ok := e.r.next()
		e.r.drop(it)
		e.ended, e.err = it.end || !ok, it.err
	}
	return e.err
}
