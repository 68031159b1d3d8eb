//go:build unix

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

// Granularity returns the alignment of the offset of [Shared].
func Granularity() int64 { return int64(os.Getpagesize()) }

// Shared maps n > 0 bytes of a file from offset on, for reading and writing. Other processes that map them see what is
// written. The file must have these bytes, and keep them: touching others is a fault. [UnmapShared] gives them back.
func Shared(f *os.File, offset int64, n int) ([]byte, error) {
	b, err := unix.Mmap(int(f.Fd()), offset, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return b, nil
}

// UnmapShared unmaps what [Shared] returned, all of it.
func UnmapShared(b []byte) error { return os.NewSyscallError("munmap", unix.Munmap(b)) }
