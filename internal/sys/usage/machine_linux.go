package usage

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of /proc/stat: USER_HZ, which is 100 on every architecture.
const tick = 10 * time.Millisecond

// ownMachine sums the times of all cores in /proc/stat. Idle and iowait are left out, and guest time is part of user
// time already.
func ownMachine() (busy time.Duration, cores int) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 9 || !bytes.HasPrefix(line, []byte("cpu")) {
			break
		}
		if string(fields[0]) != "cpu" {
			cores++
			continue
		}
		for _, i := range []int{1, 2, 3, 6, 7, 8} { // user, nice, system, irq, softirq, steal
			n, err := strconv.ParseInt(string(fields[i]), 10, 64)
			if err != nil {
				return 0, 0
			}
			busy += time.Duration(n) * tick
		}
	}
	return busy, cores
}

// storageRead returns the bytes that page faults and reads brought from storage; pages that were cached do not count.
func storageRead() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return int64(u.Inblock) * 512
}
