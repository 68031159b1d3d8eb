package loader

import "time"

// SetProcessClock replaces the clock of CPU time, hides all other statistics of the system, and
// returns a function that restores both.
func SetProcessClock(f func() time.Duration) (restore func()) {
	process, machine, storage := processClock, machineClock, storageRead
	processClock = f
	machineClock = func() (time.Duration, int) { return 0, 0 }
	storageRead = func() int64 { return 0 }
	return func() { processClock, machineClock, storageRead = process, machine, storage }
}

// SetStorageRead replaces the count of bytes that come from storage, and returns what puts it back.
func SetStorageRead(f func() int64) (restore func()) {
	storage := storageRead
	storageRead = f
	return func() { storageRead = storage }
}

// Scratch returns how many bytes of stored records the workers of a Loader have memory for.
func Scratch(ld *Loader) (bytes int) {
	workers := ld.pool.workers
	if ld.hands != nil {
		workers = append(workers[:len(workers):len(workers)], ld.hands.worker)
	}
	for _, w := range workers {
		bytes += w.filler.Scratch()
	}
	return bytes
}
