package mirror

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// punch gives the disk blocks of a part of a file back.
func punch(f *os.File, off, n int64) error {
	return fallocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// fallocate is fallocate(2), once more where a signal has ended it.
func fallocate(f *os.File, mode uint32, off, n int64) error {
	for {
		if err := unix.Fallocate(int(f.Fd()), mode, off, n); err != unix.EINTR {
			return err
		}
	}
}

// diskBytes returns what a file takes on disk.
func diskBytes(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// isFull reports whether err is a fault of the disk: data may still be held in memory then.
func isFull(err error) bool {
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EIO, unix.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
