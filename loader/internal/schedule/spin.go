package schedule

import (
	"sync/atomic"
	"time"
)

const (
	pauses       = 4       // between two looks
	looksAtClock = 32      // looks between two at the clock
	mostLooks    = 1 << 10 // looks, should the clock stand still
)

// spinWhile waits for what another core is about to do without giving up its own: to sleep and to be woken takes tens
// of microseconds, in which a short piece of work has long been done. It looks at word for as long as it is seen, and
// for about limit at most. It reports whether word has changed. The goroutine keeps its CPU meanwhile, so the goroutine
// that changes word needs another one.
func spinWhile(word *atomic.Uint64, seen uint64, limit time.Duration) (changed bool) {
	began := time.Now()
	for n := 1; word.Load() == seen; n++ {
		if n%looksAtClock == 0 && (n >= mostLooks || time.Since(began) >= limit) {
			return false
		}
		pause(pauses)
	}
	return true
}
