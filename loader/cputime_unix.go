//go:build unix

package loader

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime returns how long the threads of the process have run on cores, all together.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
