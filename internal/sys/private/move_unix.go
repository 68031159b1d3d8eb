//go:build unix

package private

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Move renames a file or folder from one open folder to another, as [os.Rename] does.
func Move(from *os.Root, name string, to *os.Root, newName string) error {
	return between(from, name, to, newName, func(a, b int) error { return unix.Renameat(a, name, b, newName) })
}

// between calls rename with the descriptors of two folders.
func between(from *os.Root, name string, to *os.Root, newName string, rename func(a, b int) error) error {
	a, err := from.Open(".")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := to.Open(".")
	if err != nil {
		return err
	}
	defer b.Close()
	for {
		err := rename(int(a.Fd()), int(b.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.LinkError{Op: "rename", Old: name, New: newName, Err: err}
		}
	}
}
