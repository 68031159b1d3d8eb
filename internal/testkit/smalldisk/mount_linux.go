package smalldisk

import (
	"os"

	"golang.org/x/sys/unix"
)

// Mount mounts a file system of that size, such as "256k", at an existing folder, which needs root.
// It is empty, and is in memory. unmount unmounts it, even while files in it are open.
func Mount(dir, size string) (unmount func() error, err error) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		return nil, &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	return func() error { return unix.Unmount(dir, unix.MNT_DETACH) }, nil
}
