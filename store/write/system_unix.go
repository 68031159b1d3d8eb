//go:build unix

package write

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/store"
)

// lockFile takes an exclusive lock that ends when f is closed or the process dies.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return store.ErrBusy
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK),
		errors.Is(err, unix.EINVAL):
		return ErrNoLocks
	}
	return err
}

// ignoreNoSync lets file systems pass that cannot sync a folder.
func ignoreNoSync(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// checkWritable reports whether files in a folder may be replaced.
func checkWritable(folder string) error { return unix.Access(folder, unix.W_OK|unix.X_OK) }
