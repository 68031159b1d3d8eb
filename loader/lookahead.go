package loader

import (
	"context"
	"time"
)

// scout announces to the Source which records a pass will need, in the order in which it will, as
// far in advance as the Source wants to know.
func (ld *Loader) scout(p *pass, src RemoteSource) {
	batch := max(1, ld.plan.Stored())
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
		for src.LookaheadBytes() < int64(tick-ld.lowest(p))*batch {
			if src.LookaheadBytes() == 0 || !pause(p.ctx) {
				return
			}
		}
		if !ld.plan.Announce(p.ctx, src.Fetch, t.order, t.step(tick), indices) {
			return
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
