package schedule

import (
	"context"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
)

// span is the part of one epoch that a pass delivers.
type span struct {
	order *order.Epoch
	from  int // step that comes first: not 0 after Resume
	first int // tick of that step
	taken Ticks
}

// end returns the tick after the last of the span.
func (t *span) end() int { return t.first + max(t.from, t.order.Steps) - t.from }

// step returns the number of the batch that has a tick.
func (t *span) step(tick int) int { return tick - t.first + t.from }

// front is the state that only the goroutine of the loop changes, so that it may read it without the lock.
type front struct {
	spans  []*span // the epoch being delivered, and the one after it if the loop goes on
	low    int     // first tick that was not delivered
	alone  bool    // there are no workers: only the loop takes the last one away, or adds the first
	inline bool    // the loop makes its batches itself
	warm   bool    // because they are views of warm memory
	seen   outlook
}

// outlook is what a loop knows about the batches ahead.
type outlook struct {
	next int // first tick that was not looked at
	cold int // the last one before it whose batch takes longer to make than to hand over; -1 if none
}

// pass is the state of one loop over batches, of one epoch or of several. The Schedule's lock
// guards all fields except front, which belongs to the loop's goroutine.
type pass struct {
	ctx     context.Context // of the reads; done when the loop is left
	cancel  context.CancelCauseFunc
	unwatch func() bool // ends the wait for ctx
	began   time.Duration
	reads   Reads

	front     front
	next      int           // next tick to be assigned
	end       int           // first tick that is not assigned any more
	early     Ticks         // delivered ticks after low
	filling   int           // pieces of work under way
	opening   bool          // the first batch is being prepared
	split     *slot         // batch whose pieces are being handed out
	delivered int           // number of delivered batches
	handed    time.Duration // when the consumer got its present batch; 0 if it has none
	cause     error         // why the pass was cancelled
	abandoned bool          // the loop was left while a read hangs
}

// last returns the last epoch that the pass knows of.
func (p *pass) last() *span { return p.front.spans[len(p.front.spans)-1] }

// follow adds an epoch after the last epoch of the pass.
func (p *pass) follow(e *order.Epoch) *span {
	next := &span{order: e, first: p.last().end()}
	p.front.spans = append(p.front.spans, next)
	return next
}

// spanOf returns the epoch that a tick belongs to.
func (p *pass) spanOf(tick int) *span {
	if tick >= p.front.spans[0].end() {
		return p.front.spans[1]
	}
	return p.front.spans[0]
}

// skip passes over ticks that a resumed run delivered before: with Unordered, later batches may
// have been delivered early.
func (p *pass) skip() {
	first := p.front.spans[0]
	for p.next < p.end && p.next < MaxDisplacement && first.first == 0 && first.taken.has(p.next) {
		p.next++
	}
}

// fail ends the pass for a cause. Only the first cause counts: later errors are usually
// consequences, such as a cancelled read.
func (p *pass) fail(cause error) {
	if p.cause == nil {
		p.cause = cause
		p.end = p.next
		p.cancel(cause)
	}
}

// more reports whether the current epoch has a batch that was not delivered.
func (p *pass) more() bool { return p.front.low < p.front.spans[0].end() }

// deliver records that a tick was delivered. With Unordered a later tick may come first; low moves
// over all ticks that are delivered without a gap.
func (p *pass) deliver(tick int) {
	p.delivered++
	if tick > p.front.low {
		p.early.add(tick - p.front.low)
		return
	}
	for again := true; again; again = p.early.has(0) {
		p.front.low++
		p.early.shift()
	}
}

// position returns the position of the pass, for a State.
func (p *pass) position() Position {
	t := p.front.spans[0]
	if !p.more() {
		return Position{Epoch: t.order.Number + 1}
	}
	return Position{t.order.Number, t.step(p.front.low), p.early}
}

// finished returns a slot whose batch may be handed out now, or nil: the next batch, or
// with Unordered any finished batch of the epoch.
func (p *pass) finished(t *slotTable) *slot {
	last := p.front.low + 1
	if t.unordered {
		last = min(p.next, p.front.spans[0].end())
	}
	for tick := p.front.low; tick < last; tick++ {
		if t.isDone(tick) {
			return t.at(tick)
		}
	}
	return nil
}
