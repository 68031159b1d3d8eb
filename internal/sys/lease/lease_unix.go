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
