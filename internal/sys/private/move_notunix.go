//go:build !unix

package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Move renames a file or folder from one open folder to another, as [os.Rename] does. An existing
// read-only file, which Windows would keep, is replaced, too.
func Move(from *os.Root, name string, to *os.Root, newName string) error {
	rename := func() error {
		return os.Rename(filepath.Join(from.Name(), name), filepath.Join(to.Name(), newName))
	}
	err := rename()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	info, statErr := to.Lstat(newName)
	if statErr != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o200 != 0 {
		return err
	}
	if err := to.Chmod(newName, 0o666); err != nil {
		return err
	}
	if err := rename(); err != nil {
		return errors.Join(err, to.Chmod(newName, info.Mode().Perm()))
	}
	return nil
}
