package schedule

import (
	"context"
	"fmt"
	"runtime/trace"
	"time"

	"github.com/penstock/penstock/loader/internal/order"
)

// Loop is one loop over the batches of epochs, from start to end. One goroutine uses it; only Ahead
// may be called by any goroutine.
type Loop struct {
	s *Schedule
	p *pass
}

// Plan describes the batches of a Loop.
type Plan struct {
	First *order.Epoch
	From  Position     // in First
	Next  *order.Epoch // nil if none follows
	Reads Reads        // of the loop
}

// Reads tells the Schedule where records come from.
type Reads interface {
	// FromStorage reports whether most of the bytes read since the loop began came from storage. It is called with
	// the Schedule's lock held.
	FromStorage() bool
}

// NewLoop returns a Loop that Begin will start. All of its parts are one allocation, because a loop
// over a small epoch may be short.
func (s *Schedule) NewLoop(plan Plan) *Loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	alone := s.pool.workers == 0
	var of struct { // one allocation for all
		loop  Loop
		pass  pass
		first span
		spans [2]*span
	}
	p, l := &of.pass, &of.loop
	*l = Loop{s, p}
	p.began, p.reads, p.early = s.config.Clock(), plan.Reads, plan.From.Early
	of.first = span{order: plan.First, from: plan.From.Step, taken: plan.From.Early}
	p.front = front{spans: append(of.spans[:0], &of.first), alone: alone, inline: alone, seen: outlook{cold: -1}}
	if plan.Next != nil {
		p.follow(plan.Next)
	}
	p.end = p.last().end()
	return l
}

// Begin makes the loop the current one of its Schedule. Look must have been called, since Begin
// wakes the workers only if they are needed. A context that ends wakes the loop, which may be
// waiting for a batch.
func (l *Loop) Begin(ctx context.Context) error {
	s, p := l.s, l.p
	p.opening = s.config.MaxWorkers > 1 && !p.front.inline
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed != nil:
		return s.closed
	case s.lost != nil:
		return fmt.Errorf("a read of an earlier one still hangs: %w", s.lost)
	case s.pass != nil:
		return ErrBusy
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	s.pass = p
	s.resumed = false
	s.watch.times.Epochs++
	l.callWorkersLocked()
	p.unwatch = context.AfterFunc(p.ctx, func() { // wakes a loop that waits
		s.mu.Lock()
		defer s.mu.Unlock()
		p.fail(context.Cause(p.ctx))
		s.tellLocked()
	})
	return nil
}

// callWorkersLocked starts the workers, once, and wakes them, unless the loop makes its batches
// itself. A Loader whose batches are all warm views never starts a goroutine.
func (l *Loop) callWorkersLocked() {
	s := l.s
	if l.p.front.inline {
		return
	}
	if !s.started && s.config.MaxWorkers > 0 {
		s.started = true
		s.config.Start()
	}
	s.work.Broadcast()
}

// Context returns the context of the reads of the loop, which is done when the loop is left.
func (l *Loop) Context() context.Context { return l.p.ctx }

// More reports whether the current epoch has a batch that was not delivered.
func (l *Loop) More() bool { return l.p.more() }

// Epoch returns the current epoch, and the step in it that is next.
func (l *Loop) Epoch() (e *order.Epoch, step int) {
	t := l.p.front.spans[0]
	return t.order, t.step(l.p.front.low)
}

// IsInline reports whether the loop makes its next batches itself, and whether it does so because they are
// views of warm memory.
func (l *Loop) IsInline() (inline, warm bool) { return l.p.front.inline, l.p.front.warm }

// Look decides who makes the next batches: the loop or the workers. The loop makes them while every
// batch that workers might make in advance is instant, or if no number of workers is faster.
// Otherwise workers make them, and have the time to bring in what is not in memory. isInstant
// reports whether some steps together are instant; nil means never.
func (l *Loop) Look(isInstant func(e *order.Epoch, step, steps int) bool) {
	s, f := l.s, &l.p.front
	warm := isInstant != nil && l.isWarm(isInstant)
	inline := warm || f.alone
	if warm == f.warm && inline == f.inline {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.warm, f.inline = warm, inline
	s.pool.restart(l.p.next - f.low)
	if s.pass == l.p {
		l.callWorkersLocked()
	}
}

// MaxTogether is how many steps are checked, and made, together. One check of a long run costs as
// much as one of a short run.
const MaxTogether = 16

// isWarm reports whether every batch that workers might make in advance is instant. Batches that
// were checked are not checked again: front.seen moves along with the loop.
func (l *Loop) isWarm(isInstant func(e *order.Epoch, step, steps int) bool) bool {
	f := &l.p.front
	last := min(l.p.last().end(), f.low+l.s.config.Prefetch+l.s.config.MaxWorkers+1)
	for f.seen.next < last {
		t := l.p.spanOf(f.seen.next)
		step, many := t.step(f.seen.next), min(MaxTogether, t.end()-f.seen.next)
		if many > 1 && isInstant(t.order, step, many) {
			f.seen.next += many
			continue
		}
		if !isInstant(t.order, step, 1) {
			f.seen.cold = f.seen.next
		}
		f.seen.next++
	}
	return f.seen.cold < f.low
}

// AssignInline appends to list the tasks, of one epoch and at most most, that the loop should make
// now. There are none while a worker is still filling a batch, or if a finished batch is waiting.
func (l *Loop) AssignInline(list []Task, most int) []Task {
	s, p := l.s, l.p
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.filling > 0 || p.finished(&s.slots) != nil {
		return list
	}
	for n := 0; n < most; n++ {
		p.skip()
		if len(list) > 0 && (p.next >= p.end || p.spanOf(p.next).order != list[0].Epoch) {
			break
		}
		b := s.assignStepLocked(p)
		if b == nil {
			break
		}
		b.inline = true
		list = append(list, taskOf(p, b))
	}
	s.checkLocked()
	return list
}

// DoneInline marks the batches that the loop made together as done.
func (l *Loop) DoneInline(list []Task) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		s.slots.all[list[i].Slot].state = done
	}
	l.p.filling -= len(list)
	s.checkLocked()
}

// Given is a batch that the loop body gets.
type Given struct {
	Slot   int
	Inline bool // the loop made it
}

// Take waits for the next batch and hands it out. The loop asked for the batch at the time now.
// made is when the loop finished the batch if it made the batch itself, and 0 otherwise; passing it
// saves a reading of the clock. The error is the error of Done, or why the loop was cancelled.
func (l *Loop) Take(now, made time.Duration) (Given, error) {
	s, p := l.s, l.p
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.leaveBody(p, now)
	b := p.finished(&s.slots)
	switch {
	case b != nil:
		s.watch.times.Ready++
	case p.cause == nil:
		made = 0
		b = l.awaitLocked(now)
	}
	if made == 0 {
		made = s.config.Clock()
	}
	p.handed = made
	s.watch.waited(p, b, made-now)
	if p.cause == nil && p.ctx.Err() != nil {
		p.fail(context.Cause(p.ctx)) // the func that Begin left with it has not seen it yet
	}
	switch {
	case p.cause != nil:
		return Given{}, p.cause
	case b.err != nil:
		return Given{}, b.err
	}
	l.giveLocked(b, now)
	s.checkLocked()
	return Given{b.number, b.inline}, nil
}

// awaitLocked waits until a batch is done and returns it, or nil if the pass was cancelled. If that
// pays, it spins before it sleeps. The lock is released while it spins: workers need it to report
// the batch.
func (l *Loop) awaitLocked(since time.Duration) *slot {
	s, p := l.s, l.p
	defer trace.StartRegion(p.ctx, "loader: wait").End()
	if s.spinner.spins(s.pool.workers, s.config.Cores) {
		seen := s.events.n.Load()
		s.mu.Unlock()
		reported := s.events.spin(seen)
		s.mu.Lock()
		s.spinner.note(reported)
	}
	b := p.finished(&s.slots)
	l.watchLocked()
	for b == nil && p.cause == nil {
		s.ready.Wait()
		b = p.finished(&s.slots)
		if b == nil && p.cause == nil && l.overdue(since) {
			p.fail(l.stuckLocked())
		}
	}
	l.unwatchLocked()
	return b
}

// giveLocked records that the loop body receives the batch of b.
func (l *Loop) giveLocked(b *slot, now time.Duration) {
	s, p := l.s, l.p
	before := p.front.low
	p.deliver(b.tick)
	if p.front.low-before > 1 { // a late batch held the workers up
		s.work.Broadcast()
	}
	s.slots.window[b.tick%len(s.slots.window)] = nil
	b.state = given
	if p.delivered == 1 {
		s.watch.times.FirstBatch = s.config.Clock() - p.began
	}
	if !p.front.warm {
		l.tuneLocked()
		p.front.alone = s.pool.workers == 0
	}
}

// Advance moves the loop to its next epoch, which workers may have begun to fill. more is the epoch
// after the next epoch, or nil.
func (l *Loop) Advance(more *order.Epoch) {
	s, p := l.s, l.p
	s.mu.Lock()
	defer s.mu.Unlock()
	p.front.spans = p.front.spans[1:]
	s.watch.times.Epochs++
	if more == nil {
		return
	}
	if next := p.follow(more); p.cause == nil && p.end == next.first {
		p.end = next.end()
		s.work.Broadcast()
	}
}

// Finish ends the loop. It cancels the batches that are being filled and waits for them, so that
// nothing reads the Source afterwards; Sweep then frees the slots. If a read hangs longer than the
// Timeout, Finish abandons the loop and returns false: the slots stay taken until the read returns,
// because it may still write to them.
func (l *Loop) Finish() (whole bool) {
	s, p := l.s, l.p
	p.unwatch()
	s.mu.Lock()
	s.watch.leaveBody(p, s.config.Clock())
	s.at = p.position()
	timedOut := p.cause != nil
	p.fail(context.Canceled)
	for since := s.config.Clock(); p.filling > 0; {
		l.watchLocked()
		s.ready.Wait()
		if p.filling > 0 && timedOut && l.overdue(since) {
			p.abandoned = true
			s.lost = p.cause
			l.unwatchLocked()
			s.mu.Unlock()
			return false
		}
	}
	l.unwatchLocked()
	s.mu.Unlock()
	return true
}

// Sweep frees all slots of a finished loop except kept ones, and lets another loop begin.
func (l *Loop) Sweep() { l.s.sweep() }

// Ahead returns the epoch and the step of a tick, for announcing records to a Source. If workers
// have begun the tick already, Ahead returns the next tick that no worker has: announcing what is
// being read is too late. The epoch is nil beyond what the loop knows. low is the first tick that
// was not delivered. Any goroutine may call Ahead.
func (l *Loop) Ahead(tick int) (e *order.Epoch, step, at, low int) {
	s, p := l.s, l.p
	s.mu.Lock()
	defer s.mu.Unlock()
	if tick > 0 {
		tick = max(tick, p.next)
	}
	for _, t := range p.front.spans {
		if tick < t.end() {
			at = max(tick, t.first)
			return t.order, t.step(at), at, p.front.low
		}
	}
	return nil, 0, 0, p.front.low
}

// watchLocked arranges that a waiting loop wakes up when the Timeout is over: a sync.Cond has no
// wait with a limit.
func (l *Loop) watchLocked() {
	s := l.s
	switch {
	case s.config.Timeout == 0:
	case s.alarm == nil:
		s.alarm = time.AfterFunc(s.config.Timeout, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tellLocked()
		})
	default:
		s.alarm.Reset(s.config.Timeout)
	}
}

// unwatchLocked stops the alarm of watchLocked.
func (l *Loop) unwatchLocked() {
	if l.s.alarm != nil {
		l.s.alarm.Stop()
	}
}

// overdue reports whether the Timeout has passed since a time.
func (l *Loop) overdue(since time.Duration) bool {
	c := &l.s.config
	return c.Timeout > 0 && c.Clock()-since >= c.Timeout
}

// stuckLocked returns why the next batch is late.
func (l *Loop) stuckLocked() error {
	e, step := l.Epoch()
	if b := l.s.slots.at(l.p.front.low); b != nil {
		return l.s.config.Stuck(e.Number, step, b.number)
	}
	return l.s.config.Stuck(e.Number, step, -1)
}
