// Package lease is locks by which readers of a file keep others from removing it. They end with their process.
package lease

import (
	"errors"
	"os"

	"github.com/penstock/penstock/internal/vfs"
)

// ErrBusy is the error of a lock that another process, or another handle of this one, does not allow.
var ErrBusy = errors.New("in use")

// Shared opens a file of a folder, as [vfs.OpenIn] does, and locks it together with other readers until it is closed.
// On a file system or a system without such locks it opens the file only.
func Shared(folder, path string) (*os.File, error) { return open(folder, path, shared) }

// Exclusive opens a file as Shared does, and locks it alone until it is closed. The error is ErrBusy while there are
// readers.
func Exclusive(folder, path string) (*os.File, error) { return open(folder, path, exclusive) }

// Wait locks an open file or folder together with others, and waits while it is locked alone.
func Wait(f *os.File) error { return wait(f) }

// TryExclusive locks an open file or folder alone. The error is ErrBusy while others have it.
func TryExclusive(f *os.File) error { return lock(f, exclusive) }

func open(folder, path string, kind int) (*os.File, error) {
	f, err := vfs.OpenIn(folder, path)
	if err != nil {
		return nil, err
	}
	if err := lock(f, kind); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
