//go:build unix

package rawcache

import (
	"os"

	"golang.org/x/sys/unix"
)

// Kinds of locks.
const (
	shared    = unix.LOCK_SH
	exclusive = unix.LOCK_EX
)

// lock takes a lock that ends when f is closed. It does not wait.
func lock(f *os.File, kind int) error { return unix.Flock(int(f.Fd()), kind|unix.LOCK_NB) }
