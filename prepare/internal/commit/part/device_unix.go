//go:build unix

package part

import (
	"io/fs"
	"syscall"
)

// device is the number of the mount that a file is on.
func device(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev)
	}
	return 0
}
