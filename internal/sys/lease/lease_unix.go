//go:build unix

package lease

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	shared    = unix.LOCK_SH
	exclusive = unix.LOCK_EX
)

// lock does not wait.
func lock(f *os.File, kind int) error { return flock(f, kind|unix.LOCK_NB) }

func wait(f *os.File) error {
	for {
		if err := flock(f, shared); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// flock does nothing on a file system without locks.
func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrBusy
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK), errors.Is(err,
		unix.EINVAL),
		errors.Is(err, unix.EBADF):
		return nil
	}
	return err
}
