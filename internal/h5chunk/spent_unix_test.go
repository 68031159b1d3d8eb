//go:build unix

package h5chunk

import (
	"syscall"
	"time"
)

// spent returns the processor time of this process so far, which says what work takes on a
// machine that others keep busy.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
