package decode

import (
	"testing"

	"golang.org/x/sys/unix"
)

// threadTime returns the CPU time of this thread, in seconds.
func threadTime(b *testing.B) float64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return float64(ts.Nano()) / 1e9
}
