//go:build unix

package edit

import (
	"io/fs"
	"syscall"
)

func inode(info fs.FileInfo) any { return info.Sys().(*syscall.Stat_t).Ino }
