package usage

import "golang.org/x/sys/unix"

// Memory returns how much memory the machine has, in bytes; 0 if that is not known.
func Memory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

// PeakMemory returns the most memory that the process had at a time, in bytes; 0 if that is not
// known.
func PeakMemory() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss
}
