//go:build (linux || darwin || freebsd || netbsd || openbsd) && !race

package memory

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newPages returns n > 0 zeroed bytes that start on a page, from outside the Go heap. The ring is
// then neither counted by the pacing of the garbage collector nor kept after Close. The system
// provides the pages when they are first written. Huge pages are not requested: a page of 2 MiB
// that a virtual machine's host has yet to provide was seen to take 1.8 ms, all of it before the
// first batch, which is more than huge pages save later.
func newPages(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("allocating %d bytes of buffers: %w; lower BatchSize, Prefetch or Workers", n, err)
	}
	return b, nil
}

// freePages unmaps what newPages returned. A slice that is still in use would fault.
func freePages(b []byte) error { return unix.Munmap(b) }

// Lock keeps the pages of b in memory until they are unmapped, or returns why it cannot.
func Lock(b []byte) (why string) {
	if err := unix.Mlock(b); err != nil {
		return fmt.Sprintf("mlock of %d bytes: %v; this process may lock %s: raise it by ulimit -l, LimitMEMLOCK= of "+
			"systemd or --ulimit memlock= of a container", len(b), err, lockLimit())
	}
	return ""
}

// lockLimit returns how many bytes this process may lock, in words.
func lockLimit() string {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return "an unknown number of bytes"
	}
	return fmt.Sprintf("%d bytes", l.Cur)
}
