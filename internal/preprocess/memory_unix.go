//go:build linux || darwin

package preprocess

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// peakMemory returns the most memory that the process had at a time, in bytes.
func peakMemory() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) * 1024
}
