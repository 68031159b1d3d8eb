//go:build linux || darwin

package usage

import "golang.org/x/sys/unix"

// FreeSpace returns how many bytes can be written in a folder.
func FreeSpace(folder string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
