package schedule

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
)

// eventCount counts what a loop may wait for. It has cache lines of its own, as the loop looks at
// it while workers write to what else a Schedule has.
type eventCount struct {
	_ cpu.CacheLinePad
	n atomic.Uint64
	_ cpu.CacheLinePad
}

// spinner is how a loop waits for a batch: it spins for a moment, as long as that has paid off
// of late. A goroutine that sleeps is woken by the worker, which costs the worker a system call.
// The goroutine continues about 50 microseconds later, when workers of small batches have run out of
// slots.
type spinner struct {
	vain int // times in a row that it was over before there was a batch
	rest int // waits that are slept through because of that
}

const (
	spinTime = 50 * time.Microsecond // what it costs to be woken
	mostVain = 8
)

// spins reports whether the loop spins before it sleeps. It does not if every core has a worker:
// it would take a core from them.
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

// spin waits awake until there are other events than those seen, and reports whether there are.
func (e *eventCount) spin(seen uint64) bool {
	spinWhile(&e.n, seen, spinTime)
	return e.n.Load() != seen
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
