//go:build linux || openbsd || dragonfly || solaris

package ctime

import (
	"io/fs"
	"syscall"
)

func of(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
