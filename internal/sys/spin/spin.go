// Package spin waits for what another core is about to do without giving up its own: to sleep
// and to be woken takes tens of microseconds, in which a short piece of work has long been done.
package spin

import (
	"sync/atomic"
	"time"
)

const (
	pauses = 4       // between two looks
	clock  = 32      // looks between two at the clock
	most   = 1 << 10 // looks, should the clock stand still
)

// While looks at word for as long as it is seen, and for about limit at most. It reports whether
// it has changed. The goroutine keeps its CPU meanwhile, so the goroutine that changes word needs another one.
func While(word *atomic.Uint64, seen uint64, limit time.Duration) (changed bool) {
	began := time.Now()
	for n := 1; word.Load() == seen; n++ {
		if n%clock == 0 && (n >= most || time.Since(began) >= limit) {
			return false
		}
		pause(pauses)
	}
	return true
}
