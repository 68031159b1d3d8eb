package usage

import "golang.org/x/sys/unix"

// PeakMemory returns the most memory that the process had at a time, in bytes; 0 if that is not
// known.
func PeakMemory() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss
}
