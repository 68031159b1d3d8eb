//go:build (linux || darwin || freebsd || netbsd || openbsd) && !race

package loader

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// lock keeps the pages of b in memory until they are unmapped, or returns why it cannot.
func lock(b []byte) (why string) {
	if err := unix.Mlock(b); err != nil {
		return fmt.Sprintf("mlock of %d bytes: %v; this process may lock %s: raise it by ulimit -l, LimitMEMLOCK= of systemd or --ulimit memlock= of a container", len(b), err, lockLimit())
	}
	return ""
}

// lockLimit returns the limit in words.
func lockLimit() string {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return "an unknown number of bytes"
	}
	return fmt.Sprintf("%d bytes", l.Cur)
}
