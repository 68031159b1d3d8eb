package crash

import "golang.org/x/sys/unix"

// freeBytes returns what the file system of a folder has left; 0 if it is not there.
func freeBytes(folder string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0
	}
	return int64(s.Bavail) * int64(s.Bsize)
}

// inMemory reports whether a folder is kept in memory alone.
func inMemory(folder string) bool {
	var s unix.Statfs_t
	return unix.Statfs(folder, &s) == nil && s.Type == unix.TMPFS_MAGIC
}
