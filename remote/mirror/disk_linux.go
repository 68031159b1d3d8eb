package mirror

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// punch frees the disk space of a part of a file, which then reads as zeros. The length of the file
// stays.
func punch(f *os.File, off, n int64) error {
	return fallocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// fallocate calls fallocate(2), and repeats it if a signal has interrupted it.
func fallocate(f *os.File, mode uint32, off, n int64) error {
	for {
		if err := unix.Fallocate(int(f.Fd()), mode, off, n); err != unix.EINTR {
			return err
		}
	}
}

// diskBytes returns how much disk space a file takes, which for a sparse file is less than its size.
func diskBytes(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// isFull reports whether err says that the disk is full or broken. Training can then go on with blocks held in memory.
func isFull(err error) bool {
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EIO, unix.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
