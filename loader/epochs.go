package loader

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/penstock/penstock/loader/sampler"
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
		yield(Batch{}, &Error{Epoch: p.parts[0].number, Batch: -1, Record: -1, Err: err})
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
	opts    *Options
	number  int
	seq     sampler.Sequence
	runs    sampler.SliceSequence // nil if seq is none
	records int                   // positions of seq
	steps   int                   // batches
	from    int                   // step that comes first: not 0 after Resume
	first   int                   // tick of that step
	taken   ticks
}

// part returns epoch number, to be delivered from a step on.
func (c *setup) part(number, from int) *part {
	t := &part{opts: &c.opts, number: number, seq: c.sequence(number), from: from}
	t.records = t.seq.Len()
	t.runs, _ = t.seq.(sampler.SliceSequence)
	t.steps = max(from, c.opts.batches(t.records))
	return t
}

// end returns the tick after the last of the part.
func (t *part) end() int { return t.first + t.steps - t.from }

// step returns the number of the batch that has a tick.
func (t *part) step(tick int) int { return tick - t.first + t.from }

// slice returns the positions of this rank in a step: n from pos on. The last pad of them
// are beyond the end of the epoch. All ranks have the same n.
func (t *part) slice(step int) (pos, n, pad int) {
	global := t.opts.global()
	start := step * global
	left := min(global, t.records-start)
	n = (left + t.opts.World.Size - 1) / t.opts.World.Size
	pos = start + t.opts.World.Rank*n
	return pos, n, min(n, max(0, pos+n-start-left))
}

// span is slice for some steps, which follow each other on one rank.
func (t *part) span(step, steps int) (pos, n, pad int) {
	pos, n, pad = t.slice(step)
	if steps > 1 {
		last, m, lastPad := t.slice(step + steps - 1)
		n, pad = last+m-pos, lastPad
	}
	return pos, n, pad
}

// choose sets dst to the records of the positions from pos on, the last pad of which repeat
// the epoch from its start.
func (t *part) choose(pos, pad int, dst []int) {
	real := len(dst) - pad
	if real > 0 {
		t.seq.Fill(pos, dst[:real])
	}
	for i := real; i < len(dst); i++ {
		t.seq.Fill((pos+i)%t.records, dst[i:i+1])
	}
}

// runAt returns the first record of n positions from pos on, the last pad of which are beyond the
// end, if it is known at once that they are one run.
func (t *part) runAt(pos, n, pad int) (first int, ok bool) {
	if t.runs == nil || pad > 0 || n == 0 {
		return 0, false
	}
	return t.runs.SliceAt(pos, n)
}

// maxDisplacement is how far Unordered lets a batch be delivered before an earlier one: that many
// bits are in a State.
const maxDisplacement = 64

// ticks is a set of the ticks from the first one on that was not delivered.
type ticks uint64

func (t ticks) has(i int) bool { return i < maxDisplacement && t>>i&1 == 1 }
func (t *ticks) add(i int)     { *t |= 1 << i }

// shift makes what was i+1 be i.
func (t *ticks) shift() { *t >>= 1 }
