package hdf5

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve allocates disk space for the first size bytes of f and for extra bytes after them, without making f longer
// than size. A file system that cannot do that is not an error.
func reserve(f *os.File, size, extra int64) error {
	fd := int(f.Fd())
	if !hasRoom(fd, size+extra) {
		return unix.ENOSPC
	}
	err := fallocate(fd, 0, 0, size)
	if err == nil {
		err = fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, size, extra)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// hasRoom reports whether the disk has space for the file to grow to that many bytes. A reservation that fails can have
// taken all free space for a moment, in which other programs fail, so the free space is asked for first.
func hasRoom(fd int, bytes int64) bool {
	var file unix.Stat_t
	var disk unix.Statfs_t
	if unix.Fstat(fd, &file) != nil || unix.Fstatfs(fd, &disk) != nil || disk.Blocks == 0 {
		return true // it is not known
	}
	missing := bytes - file.Blocks*512
	return missing <= 0 || uint64(missing)/uint64(disk.Bsize) <= disk.Bavail
}

func fallocate(fd int, mode uint32, off, n int64) error {
	for {
		err := unix.Fallocate(fd, mode, off, n)
		if err != unix.EINTR {
			return err
		}
	}
}
