package mmapds

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openDirect opens a file for reads past the page cache.
func openDirect(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("%w: %w", errNoDirect, err)
	}
	return f, err
}

// pread is one system call: os.File would go on at the end of the file, where a direct read
// of what is left is refused.
func pread(f *os.File, b []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(int(f.Fd()), b, off)
		switch {
		case err == nil:
			return n, nil
		case err == unix.EINVAL:
			return 0, fmt.Errorf("%w: %w", errNoDirect, err)
		case err != unix.EINTR:
			return 0, &os.PathError{Op: "pread", Path: f.Name(), Err: err}
		}
	}
}
