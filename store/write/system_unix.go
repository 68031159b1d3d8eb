//go:build unix

package write

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ignoreNoSync lets file systems pass that cannot sync a folder.
func ignoreNoSync(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// keepAccess gives a file of a folder the owner, group and permissions of the file that it replaces. Where this user
// may not choose that group, the group that the file gets has no permissions.
func keepAccess(folder *os.Root, name string, old fs.FileInfo) error {
	mode := old.Mode().Perm()
	st, ok := old.Sys().(*syscall.Stat_t)
	if ok && folder.Lchown(name, int(st.Uid), int(st.Gid)) != nil && folder.Lchown(name, -1, int(st.Gid)) != nil {
		mode &^= 0o070
	}
	return folder.Chmod(name, mode)
}

// checkWritable reports whether files in a folder may be replaced.
func checkWritable(folder string) error { return unix.Access(folder, unix.W_OK|unix.X_OK) }
