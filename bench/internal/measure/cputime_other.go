//go:build !linux

package measure

import "time"

var started = time.Now()

// processTime is that of the clock here.
func processTime() time.Duration { return time.Since(started) }
