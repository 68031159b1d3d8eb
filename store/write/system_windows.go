package write

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"

	"github.com/penstock/penstock/store"
)

// lockFile takes an exclusive lock that ends when f is closed or the process dies. It locks a byte far past the
// content, as others cannot read locked bytes.
func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return store.ErrBusy
	case errors.Is(err, windows.ERROR_NOT_SUPPORTED), errors.Is(err, windows.ERROR_INVALID_FUNCTION):
		return ErrNoLocks
	}
	return err
}

// ignoreNoSync: Windows cannot sync a folder, and says so in its own ways.
func ignoreNoSync(error) error { return nil }

// keepAccess: a file has the access list of its folder.
func keepAccess(*os.Root, string, fs.FileInfo) error { return nil }

// checkWritable: Windows has no such permission of folders.
func checkWritable(string) error { return nil }
