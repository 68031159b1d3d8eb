package schedule

import (
	"sync/atomic"
	"time"
)

const (
	// spinWhile reads the clock only now and then: a reading takes longer than several looks at the
	// word.
	pauses       = 4       // between two looks
	looksAtClock = 32      // looks between two at the clock
	mostLooks    = 1 << 10 // looks, should the clock stand still
)

// spinWhile waits, without giving up its CPU, for a word that another core is about to change.
// Sleeping and being woken takes tens of microseconds, and a short piece of work is done long
// before that. It returns when word differs from seen, or after about limit, and reports whether
// word has changed. The goroutine keeps its CPU meanwhile, so that the goroutine that changes word
// needs another CPU.
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
