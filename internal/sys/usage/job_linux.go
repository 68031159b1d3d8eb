package usage

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processOf returns how long the threads of a process have run; false if it has ended.
func processOf(pid int) (time.Duration, bool) {
	const ofProcess = 2 // CPUCLOCK_SCHED of the number of a clock: see clock_getcpuclockid(3)
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid)<<3|ofProcess, &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// descendants returns a process and all processes that it and its children have
// started, except this process.
func descendants(root int) (pids []int) {
	next := []int{root}
	for len(next) > 0 {
		pid := next[len(next)-1]
		next = next[:len(next)-1]
		if pid == os.Getpid() || slices.Contains(pids, pid) {
			continue
		}
		pids = append(pids, pid)
		lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
		for _, list := range lists {
			text, err := os.ReadFile(list)
			if err != nil { // a thread that has ended
				continue
			}
			for _, word := range bytes.Fields(text) {
				if child, err := strconv.Atoi(string(word)); err == nil {
					next = append(next, child)
				}
			}
		}
	}
	return pids
}
