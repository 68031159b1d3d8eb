// Package usage says what memory the process had, and what disks have left.
package usage

import (
	"os"
	"strconv"
	"strings"
)

// PeakMemory returns the most memory that the process had at a time, in bytes; 0 if that is not
// known. getrusage(2) may report the process that started this one.
func PeakMemory() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
