//go:build cgo

package hdf5

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes disk space for the first size bytes of f and for extra bytes after them,
// without making f longer than size. A file system that cannot do that is no error.
func reserve(f *os.File, size, extra int64) error {
	err := fallocate(f, 0, 0, size)
	if err == nil && extra > 0 {
		err = fallocate(f, unix.FALLOC_FL_KEEP_SIZE, size, extra)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func fallocate(f *os.File, mode uint32, off, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), mode, off, n)
		if err != unix.EINTR {
			return err
		}
	}
}
