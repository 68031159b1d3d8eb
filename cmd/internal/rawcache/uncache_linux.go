package rawcache

import (
	"os"

	"golang.org/x/sys/unix"
)

// uncache has the system drop what it keeps of a file in memory, if it likes.
func uncache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
