package vfs

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errAgain says that the system could not decide whether a name stays in its folder, as something was renamed at that
// moment.
var errAgain error = unix.EAGAIN

// beneath returns the open folder of a Root for openBeneath, nil if the system does not have openat2 (Linux 5.6), or a
// container forbids it. One call of openat2 opens a name; an [os.Root] takes two for each folder on the way.
func beneath(folder *os.Root) *os.File {
	dir, err := folder.OpenFile(".", openFolder, 0)
	if err != nil {
		return nil
	}
	fd, err := openBeneath(dir, ".", openFolder)
	if err != nil {
		dir.Close()
		return nil
	}
	unix.Close(fd)
	return dir
}

// openBeneath opens a name in a folder. It follows links that stay in the folder.
func openBeneath(dir *os.File, name string, flags int) (int, error) {
	how := &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := retry(func() (int, error) { return unix.Openat2(int(dir.Fd()), name, how) })
	if err != nil && !errors.Is(err, errAgain) {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, err
}

// openMember opens the file at a path in a folder, if no link of the path leads out of the folder, not even for a
// moment.
func openMember(folder, path string, flags int) (*os.File, error) {
	name, err := filepath.Rel(folder, path)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenFile(folder, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := openBeneath(dir, name, flags)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: bare(err)}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Random advises the kernel that a file is read at random places, so that the kernel reads
// only the requested bytes. It is a hint.
func Random(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) }
