package decode

import (
	"testing"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of this process, in seconds.
func cpuTime(b *testing.B) float64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return float64(ts.Nano()) / 1e9
}
