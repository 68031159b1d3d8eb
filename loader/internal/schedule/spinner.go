package schedule

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
)

// eventCount counts the events that a loop may wait for. It has cache lines of its own: the loop
// reads it while workers write to other fields of a Schedule.
type eventCount struct {
	_ cpu.CacheLinePad
	n atomic.Uint64
	_ cpu.CacheLinePad
}

// spinner decides how a loop waits for a batch: it spins for a moment, as long as spinning has
// recently paid off. A sleeping goroutine must be woken by the worker, which costs the worker a
// system call, and continues about 50 microseconds later, when workers of small batches have run
// out of slots.
//
// After a vain spin the loop sleeps through the next 2, 4, 8, ... waits, at most 256.
type spinner struct {
	vain int // spins in a row that ended without a batch
	rest int // coming waits without a spin, because of vain ones
}

const (
	spinTime = 50 * time.Microsecond // what it costs to be woken
	mostVain = 8
)

// spins reports whether the loop should spin before it sleeps. It should not if every core has a
// worker, because it would take a core from them.
func (w *spinner) spins(workers, cores int) bool {
	if workers >= cores {
		return false
	}
	if w.rest > 0 {
		w.rest--
		return false
	}
	return true
}

// spin waits awake until the count differs from seen, and reports whether it does.
func (e *eventCount) spin(seen uint64) bool {
	spinWhile(&e.n, seen, spinTime)
	return e.n.Load() != seen
}

// note records whether a spin ended with an event.
func (w *spinner) note(changed bool) {
	if changed {
		w.vain = 0
		return
	}
	w.vain = min(w.vain+1, mostVain)
	w.rest = 1 << w.vain
}
