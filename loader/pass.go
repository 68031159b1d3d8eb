package loader

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// front is what the goroutine of the loop alone changes, so that it may read it without the scheduler's mu.
type front struct {
	parts  []*part // the epoch being delivered, and the one after it if the loop goes on
	low    int     // first tick that was not delivered
	alone  bool    // the pool has no workers: only the loop takes the last one away, or adds the first
	inline bool    // the loop makes its batches itself
	warm   bool    // because they are views of warm memory
}

// pass is one loop over batches, of one epoch or of several, from its start to its end. Its
// batches are counted in ticks: over the ends of epochs, and without those that a State says
// were delivered before.
type pass struct {
	ctx     context.Context // of the reads; done when the loop is left
	cancel  context.CancelCauseFunc
	unwatch func() bool // ends the wait for ctx
	start   passStart

	front                   // under the scheduler's mu, as what follows
	next      int           // tick that the next free slot gets
	end       int           // ticks from here on are not handed out
	reach     int           // all ticks from low to before it are known to be done
	early     ticks         // those after low that were
	filling   int           // pieces of work under way
	opening   bool          // the first batch is being prepared
	split     *slot         // a batch whose pieces are handed out
	delivered int           // batches
	handed    time.Duration // when the consumer got the batch it has; 0 if it has none
	cause     error         // why the pass was cancelled
	abandoned bool          // its loop is left, but something hangs

	outlook outlook
	scouts  sync.WaitGroup
}

// passStart is when a pass began.
type passStart struct {
	at   time.Duration
	used resources // up to then
}

// begin makes a new pass the current one: epochs from number on, up to end.
func (ld *Loader) begin(ctx context.Context, number, end int, from position) (*pass, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("loader: epoch %d: %w", number, context.Cause(ctx))
	}
	alone := ld.alone()
	p := &pass{start: passStart{ld.now(), used()}, front: front{alone: alone, inline: alone}, outlook: outlook{cold: -1}}
	first := ld.part(number, from.step)
	first.taken = from.early
	p.early = from.early
	p.parts = append(p.parts, first)
	if number+1 < end {
		p.parts = append(p.parts, ld.following(first))
	}
	p.end = p.parts[len(p.parts)-1].end()
	ld.look(p)
	p.opening = ld.opts.maxWorkers() > 1 && !p.inline
	ld.mu.Lock()
	defer ld.mu.Unlock()
	switch {
	case ld.closed:
		return nil, ErrClosed
	case ld.lost != nil:
		return nil, fmt.Errorf("loader: epoch %d: a read of an earlier one still hangs: %w", number, ld.lost)
	case ld.pass != nil:
		return nil, fmt.Errorf("loader: epoch %d: %w", number, ErrBusy)
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	ld.pass = p
	ld.stats.others.enter(p.start.at)
	ld.resumed = false
	ld.stats.Epochs++
	ld.send(p)
	ld.callWorkersLocked(p)
	p.unwatch = context.AfterFunc(p.ctx, func() { ld.cancelled(p) })
	return p, nil
}

// following returns the epoch after t.
func (c *setup) following(t *part) *part {
	next := c.part(t.order.Number+1, 0)
	next.first = t.end()
	return next
}

// advance moves the pass to its next epoch, which the workers may have begun to fill.
func (c *scheduler) advance(p *pass, end int) {
	var more *part
	if last := p.parts[len(p.parts)-1]; last.order.Number+1 < end {
		more = c.set.following(last)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.parts = p.parts[1:]
	c.stats.Epochs++
	if more != nil {
		p.parts = append(p.parts, more)
		if p.cause == nil && p.end == more.first {
			p.end = more.end()
			c.work.Broadcast()
		}
	}
}

// partOf returns the epoch that a tick belongs to. The caller holds mu, or is the loop.
func (p *pass) partOf(tick int) *part {
	if tick >= p.parts[0].end() {
		return p.parts[1]
	}
	return p.parts[0]
}

// skipLocked passes over ticks that were delivered before the pass began.
func (p *pass) skipLocked() {
	for p.next < p.end && p.next < maxDisplacement && p.parts[0].first == 0 && p.parts[0].taken.has(p.next) {
		p.next++
	}
}

// cancelled wakes a consumer that waits when the context of its pass is done.
func (c *scheduler) cancelled(p *pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.failLocked(context.Cause(p.ctx))
	c.tellLocked()
}

// failLocked ends the pass for cause, unless it has ended for another.
func (p *pass) failLocked(cause error) {
	if p.cause == nil {
		p.cause = cause
		p.end = p.next
		p.cancel(cause)
	}
}

// more reports whether the current epoch has a batch that was not delivered.
func (p *pass) more() bool { return p.low < p.parts[0].end() }

// finish ends the pass: it cancels and awaits what is being filled, and frees all slots but
// those of kept batches.
func (c *scheduler) finish(p *pass) {
	p.unwatch()
	c.mu.Lock()
	c.stats.leaveBody(p, c.set.now())
	c.at = p.positionLocked()
	c.stats.since(p.start.used)
	c.stats.Others += c.stats.others.leave(c.set.now())
	timedOut := p.cause != nil
	p.failLocked(context.Canceled)
	for since := c.set.now(); p.filling > 0; {
		c.watchLocked(true)
		c.ready.Wait()
		if p.filling > 0 && timedOut && c.overdue(since) {
			p.abandoned = true
			c.lost = p.cause
			c.watchLocked(false)
			c.mu.Unlock()
			return
		}
	}
	c.watchLocked(false)
	c.mu.Unlock()
	p.scouts.Wait()
	c.sweep(p)
}

// positionLocked returns where the pass is.
func (p *pass) positionLocked() position {
	t := p.parts[0]
	if !p.more() {
		return position{epoch: t.order.Number + 1}
	}
	return position{t.order.Number, t.step(p.low), p.early}
}
