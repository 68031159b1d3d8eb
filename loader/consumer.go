package loader

import (
	"context"
	"fmt"
	"runtime/trace"
	"time"

	"github.com/penstock/penstock/internal/sys/spin"
)

// outlook is what a loop knows of the batches before it. Only the goroutine of the loop uses it.
type outlook struct {
	next int // first tick that was not looked at
	cold int // the last one before it whose batch takes longer to make than to hand over; -1 if none
}

// spinner is how a loop waits for a batch: it spins for a moment, as long as that has paid off
// of late. A goroutine that sleeps is woken by the worker, which loses the time of a system call
// by it, and goes on some 50 microseconds later, when workers of small batches have run out of
// buffers.
type spinner struct {
	vain int // times in a row that it was over before there was a batch
	rest int // waits that are slept through because of that
}

const (
	spinTime = 50 * time.Microsecond // what it costs to be woken
	mostVain = 8
)

// take waits for the next batch and hands it out.
func (ld *Loader) take(p *pass) (Batch, error) {
	now := ld.now()
	ld.look(p)
	made := ld.makeInline(p, now)
	ld.mu.Lock()
	defer ld.mu.Unlock()
	ld.stats.leaveBody(p, now)
	s := ld.finishedLocked(p)
	switch {
	case s != nil:
		ld.stats.Ready++
	case p.cause == nil:
		made = 0
		region := trace.StartRegion(p.ctx, "loader: wait")
		if ld.spinsLocked() {
			seen := ld.events.Load()
			ld.mu.Unlock()
			reported := ld.spin(seen)
			ld.mu.Lock()
			ld.spinner.note(reported)
		}
		s = ld.awaitLocked(p, now)
		region.End()
	}
	if made == 0 {
		made = ld.now()
	}
	p.handed = made
	ld.stats.waited(p, s, made-now)
	if p.cause == nil && p.ctx.Err() != nil {
		p.failLocked(context.Cause(p.ctx)) // cancelled has not seen it yet
	}
	switch {
	case p.cause == ErrClosed:
		return Batch{}, ErrClosed
	case p.cause != nil:
		return Batch{}, p.becauseLocked()
	case s.err != nil:
		return Batch{}, s.err
	}
	ld.giveLocked(p, s, now)
	return Batch{ld, s, s.gen.Load()}, nil
}

// giveLocked notes that the loop body gets the batch of s.
func (ld *Loader) giveLocked(p *pass, s *slot, now time.Duration) {
	before := p.low
	p.deliverLocked(s.tick)
	if p.low-before > 1 { // a late batch held the workers up
		ld.work.Broadcast()
	}
	ld.window[s.tick%len(ld.window)] = nil
	s.state = slotGiven
	if p.delivered == 1 {
		ld.stats.FirstBatch = ld.now() - p.start.at
	}
	ld.stats.count(s)
	if !p.warm {
		ld.tuneLocked(p, now)
		p.alone = ld.pool.workers == 0
	}
}

// awaitLocked sleeps until a batch is done, and returns it, or nil when the pass was cancelled.
func (ld *Loader) awaitLocked(p *pass, since time.Duration) *slot {
	s := ld.finishedLocked(p)
	ld.watchLocked(true)
	for s == nil && p.cause == nil {
		ld.ready.Wait()
		s = ld.finishedLocked(p)
		if s == nil && p.cause == nil && ld.overdue(since) {
			p.failLocked(ld.stuckLocked(p))
		}
	}
	ld.watchLocked(false)
	return s
}

// becauseLocked returns why the pass was cancelled, with the place.
func (p *pass) becauseLocked() error {
	if located, ok := p.cause.(*Error); ok {
		return located
	}
	return fmt.Errorf("loader: batch %d: %w", p.parts[0].step(p.low), p.cause)
}

// deliverLocked notes that a tick was delivered.
func (p *pass) deliverLocked(tick int) {
	p.delivered++
	if tick > p.low {
		p.early.add(tick - p.low)
		return
	}
	for again := true; again; again = p.early.has(0) {
		p.low++
		p.early.shift()
	}
}

// spinsLocked reports whether the loop spins before it sleeps. Where every core has a worker it
// does not: it would take one from them.
func (ld *Loader) spinsLocked() bool {
	if ld.pool.workers >= ld.stats.Cores {
		return false
	}
	if ld.spinner.rest > 0 {
		ld.spinner.rest--
		return false
	}
	return true
}

// spin waits awake until there are other events than those seen, and reports whether there are.
func (ld *Loader) spin(seen uint64) bool {
	spin.While(&ld.events.Uint64, seen, spinTime)
	return ld.events.Load() != seen
}

// note takes whether spinning ended with an event.
func (w *spinner) note(changed bool) {
	if changed {
		w.vain = 0
		return
	}
	w.vain = min(w.vain+1, mostVain)
	w.rest = 1 << w.vain
}

// callWorkersLocked starts the workers, once, and wakes them, unless the loop makes its batches
// itself.
func (ld *Loader) callWorkersLocked(p *pass) {
	if p.inline {
		return
	}
	ld.startLocked()
	ld.work.Broadcast()
}
