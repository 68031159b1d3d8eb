package write

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeAtOnce writes as much of head and tail as one system call does, and returns how much that was. An error counts
// as 0 bytes: the caller's next write meets it again and returns it.
func writeAtOnce(f *os.File, head, tail []byte) int {
	n, err := unix.Writev(int(f.Fd()), [][]byte{head, tail})
	if err != nil {
		return 0
	}
	return n
}

// startWriting has the system begin to write n bytes of a file to the disk, from off on. It does not wait, and has no
// effect on file systems that cannot do this.
func startWriting(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
