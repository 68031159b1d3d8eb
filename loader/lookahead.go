package loader

import (
	"context"
	"time"
)

// scout announces to the Source which records a pass will need, in the order in which it will, as
// far in advance as the Source wants to know.
func (ld *Loader) scout(p *pass, src RemoteSource) {
	batch := int64(0) // bytes
	for i := range ld.fields {
		if f := &ld.fields[i]; !f.made() {
			batch += int64(f.stored) * int64(ld.opts.BatchSize)
		}
	}
	defer func() { _ = recover() }() // of the Sampler: the worker that gets there says so
	indices := make([]int, ld.opts.BatchSize)
	for tick := 0; p.ctx.Err() == nil; tick++ {
		t, at := ld.scouted(p, tick)
		for t == nil { // another epoch may follow
			if !pause(p.ctx) {
				return
			}
			t, at = ld.scouted(p, tick)
		}
		tick = at
		for src.LookaheadBytes() < int64(tick-ld.lowest(p))*max(1, batch) {
			if src.LookaheadBytes() == 0 || !pause(p.ctx) {
				return
			}
		}
		pos, n, pad := t.slice(t.step(tick))
		next := indices[:n]
		t.choose(pos, pad, next)
		if outside(next, src.Len()) >= 0 {
			return // the worker that gets there says so
		}
		for i := range ld.fields {
			if f := &ld.fields[i]; !f.made() && src.Fetch(p.ctx, f.in.Name, next) != nil {
				return // the read that follows reports what is wrong
			}
		}
	}
}

// scouted returns the epoch that a tick belongs to, and the tick itself, or the next one that
// no worker has yet; nil at the end of what the pass knows of.
func (c *scheduler) scouted(p *pass, tick int) (*part, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tick > 0 {
		tick = max(tick, p.next)
	}
	for _, t := range p.parts {
		if tick < t.end() {
			return t, max(tick, t.first)
		}
	}
	return nil, 0
}

// lowest returns the first tick that was not delivered.
func (c *scheduler) lowest(p *pass) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.low
}

// send starts a scout before a pass, if the Source wants one.
func (ld *Loader) send(p *pass) {
	if ld.can.LookaheadBytes() > 0 {
		p.scouts.Go(func() { ld.scout(p, ld.can.Remote) })
	}
}

// pause waits a moment, and reports false if ctx ended.
func pause(ctx context.Context) bool {
	t := time.NewTimer(5 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
