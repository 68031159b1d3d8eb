package loader

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/penstock/penstock/internal/sys/spin"
)

// patience is how a loop waits for a batch: awake for a moment, as long as that has helped of late.
// A goroutine that sleeps is woken by the worker, which loses the time of a system call by it, and goes
// on some 50 microseconds later, when workers of small batches have run out of buffers.
type patience struct {
	vain int // times in a row that it was over before there was a batch
	rest int // waits that are slept through because of that
}

const (
	lingers  = 50 * time.Microsecond // what it costs to be woken
	mostVain = 8
)

// news counts what the consumer may wait for. It has cache lines of its own, as the consumer looks at
// it while workers write to what else a Loader has.
type news struct {
	_ cpu.CacheLinePad
	atomic.Uint64
	_ cpu.CacheLinePad
}

// tell says that there may be what the consumer waits for. The caller holds mu.
func (ld *Loader) tell() {
	ld.news.Add(1)
	ld.ready.Broadcast()
}

// linger waits awake, and reports whether there are news. Where every core has a worker it does not:
// it would take one from them. The caller holds mu, which others may have meanwhile.
func (ld *Loader) linger() bool {
	w := &ld.patience
	if ld.active >= ld.stats.Cores {
		return false
	}
	if w.rest > 0 {
		w.rest--
		return false
	}
	seen := ld.news.Load()
	ld.mu.Unlock()
	spin.While(&ld.news.Uint64, seen, lingers)
	ld.mu.Lock()
	if ld.news.Load() != seen {
		w.vain = 0
		return true
	}
	w.vain = min(w.vain+1, mostVain)
	w.rest = 1 << w.vain
	return false
}
