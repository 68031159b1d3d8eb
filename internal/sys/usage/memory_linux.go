// Package usage says how much CPU time and memory this process has used, and how much space disks have left.
//
// loader.Stats, the progress of preprocess and doctor print these numbers. All of them are 0 where the system does not
// report them. In a container, [Memory] is the container's limit, and [Machine] counts the cores of the whole machine.
package usage

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory returns how much memory the process may have, in bytes: the machine's, or less where its control group is
// limited, as containers usually are; 0 if the limit is unknown.
func Memory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	limit := int64(info.Totalram) * int64(info.Unit)
	groups, _ := os.ReadFile("/proc/self/cgroup") // without it there is no limit
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch controllers, group, _ := strings.Cut(rest, ":"); controllers {
		case "":
			limit = min(limit, groupLimit("/sys/fs/cgroup", group, "memory.max"))
		case "memory":
			limit = min(limit, groupLimit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return limit
}

// groupLimit returns the least limit of a control group and those around it.
func groupLimit(root, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for ; ; group = path.Dir(group) {
		text, _ := os.ReadFile(path.Join(root, group, file))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // it may be "max"
			limit = min(limit, n)
		}
		if group == path.Dir(group) {
			return limit
		}
	}
}

// PeakMemory returns the largest memory that the process has had, in bytes; 0 if it is not
// known. getrusage(2) may report the memory of the parent process.
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
