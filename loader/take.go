package loader

import (
	"context"
	"fmt"
	"runtime/trace"
	"time"
)

// take waits for the next batch and hands it out.
func (ld *Loader) take(p *pass) (Batch, error) {
	now := ld.now()
	ld.look(p)
	ld.mu.Lock()
	defer ld.mu.Unlock()
	ld.leaveBody(p, now)
	var made time.Duration
	if p.inline && p.filling == 0 && ld.finished(p) == nil {
		made = ld.fillHere(p, now)
	}
	s := ld.await(p, now, made)
	if p.cause == nil && p.ctx.Err() != nil {
		p.fail(context.Cause(p.ctx)) // cancelled has not seen it yet
	}
	switch {
	case p.cause == ErrClosed:
		return Batch{}, ErrClosed
	case p.cause != nil:
		return Batch{}, p.because()
	case s.err != nil:
		return Batch{}, s.err
	}
	before := p.low
	p.deliver(s.tick)
	if p.low-before > 1 { // a late batch held the workers up
		ld.work.Broadcast()
	}
	ld.window[s.tick%len(ld.window)] = nil
	ld.count(p, s)
	if !p.inline {
		ld.tune(now)
	}
	return Batch{s, s.gen.Load()}, nil
}

// because returns why the pass was cancelled, with the place. The caller holds mu.
func (p *pass) because() error {
	if located, ok := p.cause.(*Error); ok {
		return located
	}
	return fmt.Errorf("loader: batch %d: %w", p.parts[0].step(p.low), p.cause)
}

// deliver notes that a tick was. The caller holds mu.
func (p *pass) deliver(tick int) {
	p.delivered++
	if tick > p.low {
		p.ahead.add(tick - p.low)
		return
	}
	for again := true; again; again = p.ahead.has(0) {
		p.low++
		p.ahead.shift()
	}
}

// finished returns a slot that may be handed out now, or nil. The caller holds mu.
func (ld *Loader) finished(p *pass) *slot {
	if !ld.opts.Unordered {
		if s := ld.window[p.low%len(ld.window)]; s != nil && s.done {
			return s
		}
		return nil
	}
	for tick := p.low; tick < min(p.next, p.parts[0].end()); tick++ {
		if s := ld.window[tick%len(ld.window)]; s != nil && s.done {
			return s
		}
	}
	return nil
}

// await returns a batch that is done, or nil when the pass was cancelled. made is when the loop
// made it, and 0 if that is not known. The caller holds mu.
func (ld *Loader) await(p *pass, since, made time.Duration) *slot {
	s := ld.finished(p)
	if s != nil {
		ld.stats.Ready++
	}
	if s == nil && p.cause == nil {
		defer trace.StartRegion(p.ctx, "loader: wait").End()
		if ld.linger() {
			s = ld.finished(p)
		}
		ld.watch(true)
		for s == nil && p.cause == nil {
			ld.ready.Wait()
			s = ld.finished(p)
			if s == nil && p.cause == nil && ld.overdue(since) {
				p.fail(ld.stuck(p))
			}
		}
		ld.watch(false)
		made = 0
	}
	if p.handed = made; made == 0 {
		p.handed = ld.now()
	}
	ld.waited(p, s, p.handed-since)
	return s
}
