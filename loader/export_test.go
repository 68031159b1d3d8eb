package loader

import "time"

// SetProcessClock replaces the clock of processor time, has the system say nothing else, and
// returns what puts them back.
func SetProcessClock(f func() time.Duration) (restore func()) {
	process, machine, storage := processClock, machineClock, storageRead
	processClock = f
	machineClock = func() (time.Duration, int) { return 0, 0 }
	storageRead = func() int64 { return 0 }
	return func() { processClock, machineClock, storageRead = process, machine, storage }
}
