//go:build unix

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

// Granularity returns the alignment of the offset of [Shared].
func Granularity() int64 { return int64(os.Getpagesize()) }

// Shared maps n > 0 bytes of a file from offset on, for reading and writing. Other processes that map the same bytes
// see what is written. The file must have these bytes as long as they are mapped: touching bytes beyond its end is a
// fault. [UnmapShared] unmaps them.
func Shared(f *os.File, offset int64, n int) ([]byte, error) {
	b, err := unix.Mmap(int(f.Fd()), offset, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return b, nil
}

// UnmapShared unmaps a result of [Shared] as a whole.
func UnmapShared(b []byte) error { return os.NewSyscallError("munmap", unix.Munmap(b)) }
