//go:build linux || darwin

package preprocess

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes can be written in a folder.
func freeSpace(folder string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
