//go:build unix

package loadbench

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the time that all threads of this process computed.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
