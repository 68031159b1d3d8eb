//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	noFollow = syscall.O_NOFOLLOW
	nonBlock = syscall.O_NONBLOCK // a pipe does not wait
	modes    = true               // permissions say who may write
)

// owned reports whether a file belongs to the effective user.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func sameOwner(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Uid == y.Uid
}

func userName() string { return fmt.Sprintf("penstock-%d", os.Geteuid()) }

// HideNew makes files and folders that this process makes from now on accessible to its user alone, also files that
// other packages make accessible to all users. It sets the umask, which the whole process shares.
func HideNew() { syscall.Umask(0o077) }
