//go:build linux || openbsd || dragonfly || solaris

package raw

import (
	"io/fs"
	"syscall"
)

// changedAt returns when the content or attributes of a file were changed last, in nanoseconds; 0 if that is not known.
func changedAt(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
