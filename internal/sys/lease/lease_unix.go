//go:build unix

package lease

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func lock(f *os.File, kind Kind) error {
	if kind == Alone {
		return flock(f, unix.LOCK_EX|unix.LOCK_NB)
	}
	return flock(f, unix.LOCK_SH|unix.LOCK_NB)
}

// wait waits for a shared lock. On a file system without locks there is nothing to wait for.
func wait(f *os.File) error {
	for {
		switch err := flock(f, unix.LOCK_SH); {
		case errors.Is(err, ErrNone):
			return nil
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// flock translates the errors of flock(2). Systems report missing support in several ways: Lustre returns ENOSYS, some
// FUSE file systems EINVAL, and NFS without a lock daemon ENOLCK.
func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrBusy
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK),
		errors.Is(err, unix.EINVAL), errors.Is(err, unix.EBADF):
		return ErrNone
	}
	return err
}
