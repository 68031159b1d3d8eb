package loader

import "time"

// SetProcessClock replaces the clock of processor time, and returns what puts it back.
func SetProcessClock(f func() time.Duration) (restore func()) {
	before := processClock
	processClock = f
	return func() { processClock = before }
}
