package write

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeAtOnce writes as much of head and tail as one call of the system does, and returns that. Why
// it was not all, the next call says.
func writeAtOnce(f *os.File, head, tail []byte) int {
	n, err := unix.Writev(int(f.Fd()), [][]byte{head, tail})
	if err != nil {
		return 0
	}
	return n
}
