package rawcache

import (
	"os"

	"golang.org/x/sys/windows"
)

// Kinds of locks.
const (
	shared    = 0
	exclusive = windows.LOCKFILE_EXCLUSIVE_LOCK
)

// lock takes a lock that ends when f is closed. It does not wait.
func lock(f *os.File, kind uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), kind|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		new(windows.Overlapped))
}
