package loader

import (
	"context"
	"fmt"
	"time"
)

// scout tells the Source which records a pass will need, in the order in which it will, as
// far ahead as the Source wants to know.
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
func (ld *Loader) scouted(p *pass, tick int) (*part, int) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
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
func (ld *Loader) lowest(p *pass) int {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	return p.low
}

// send lets a scout go ahead of a pass, if the Source wants one.
func (ld *Loader) send(p *pass) {
	if ld.can.LookaheadBytes() > 0 {
		p.scouts.Go(func() { ld.scout(p, ld.can.Remote) })
	}
}

// remoteBound says how much of the link is used, where the workers mostly wait for it.
func (s Stats) remoteBound(wait, loop time.Duration, head string) Diagnosis {
	used := float64(s.Fetched) / max(1e-9, loop.Seconds())
	return Diagnosis{RemoteBound, fmt.Sprintf("remote-bound, at %s of the link: %s, and %s of that is a wait for the store, which sends %.0f MB/s; the most that the link has shown is %.0f MB/s; free loading would make the loop %s: smaller types and shapes, a faster link, or a cache that holds the dataset from the second epoch on",
		percentOf(min(1, used/max(1, s.LinkRate))), head, percent(s.FetchWait, s.work()), used/1e6, s.LinkRate/1e6, faster(gain(loop, wait))), gain(loop, wait)}
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
