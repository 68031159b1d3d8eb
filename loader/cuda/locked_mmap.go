//go:build (linux || darwin || freebsd || netbsd || openbsd) && !race

package cuda

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// lockedMemory returns memory from outside the Go heap, and why it is not locked, if so.
func lockedMemory(n int) (b []byte, why string, err error) {
	b, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, "", fmt.Errorf("cuda: %d bytes of host memory: %w", n, err)
	}
	if err := unix.Mlock(b); err != nil {
		return b, fmt.Sprintf("mlock of %d bytes: %v; this process may lock %s: raise it by ulimit -l, LimitMEMLOCK= of systemd or --ulimit memlock= of a container", n, err, lockLimit()), nil
	}
	return b, "", nil
}

// freeLocked unmaps, which unlocks.
func freeLocked(b []byte) error { return unix.Munmap(b) }

// lockLimit returns the limit in words.
func lockLimit() string {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return "an unknown number of bytes"
	}
	return fmt.Sprintf("%d bytes", l.Cur)
}
