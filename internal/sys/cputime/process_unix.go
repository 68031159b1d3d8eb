//go:build unix && !linux

package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

func process() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
