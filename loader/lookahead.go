package loader

import (
	"context"
	"time"

	"github.com/penstock/penstock/loader/internal/schedule"
)

// scout announces to the Source which records a loop will need, in the loop's order, as far in
// advance as the Source wants to know. It runs in a goroutine of its own, because Fetch may wait
// for room in the Source's cache. scout stops at the first error without a word: the worker that
// reads these records reports it.
func (c *setup) scout(ctx context.Context, l *schedule.Loop) {
	defer func() { _ = recover() }() // of the Source: the worker that gets there says so
	src, batch := c.can.Remote, max(1, c.plan.Stored())
	indices := make([]int, c.opts.BatchSize)
	for tick := 0; ctx.Err() == nil; tick++ {
		e, step, at, low := l.Ahead(tick)
		for e == nil { // another epoch may follow
			if !pause(ctx) {
				return
			}
			e, step, at, low = l.Ahead(tick)
		}
		tick = at
		for src.LookaheadBytes() < int64(tick-low)*batch {
			if src.LookaheadBytes() == 0 || !pause(ctx) {
				return
			}
			_, _, _, low = l.Ahead(tick)
		}
		if !c.plan.Announce(ctx, src.Fetch, e, step, indices) {
			return
		}
	}
}

// pause waits 5 ms, and returns false if ctx ended meanwhile.
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
