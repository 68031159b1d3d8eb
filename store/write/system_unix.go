//go:build unix

package write

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ignoreNoSync passes the errors of file systems that cannot sync a folder. Other errors of a sync stay errors: data
// may be lost.
func ignoreNoSync(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// keepAccess gives a file of a folder the owner, group and permissions of the file that it replaces. If this user may
// not set the group, the file's own group gets no permissions: it could be a larger group than the group of the old
// file.
func keepAccess(folder *os.Root, name string, old fs.FileInfo) error {
	mode := old.Mode().Perm()
	st, ok := old.Sys().(*syscall.Stat_t)
	if ok && folder.Lchown(name, int(st.Uid), int(st.Gid)) != nil && folder.Lchown(name, -1, int(st.Gid)) != nil {
		mode &^= 0o070
	}
	return folder.Chmod(name, mode)
}

// checkWritable returns an error if files in a folder may not be replaced.
func checkWritable(folder string) error { return unix.Access(folder, unix.W_OK|unix.X_OK) }
