package transforms

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time that the process has used, on all its threads.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
