//go:build unix && !linux

package usage

import (
	"time"

	"golang.org/x/sys/unix"
)

// ownProcess returns user and system time of all threads.
func ownProcess() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
