package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime returns what all threads of the process have used.
func processTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
