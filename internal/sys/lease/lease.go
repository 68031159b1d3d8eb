// Package lease is locks on open files, by which processes exclude each other, and by which readers of a file keep
// other processes from removing it. A lock ends with its file and with its process, so a killed process leaves none
// behind.
//
// Locks are advisory: flock, or Windows' LockFileEx. [Together] is shared by any number of readers, and [Alone]
// excludes all others. Some file systems have no locks (Lustre without the mount option flock): readers then go on
// without a lock, as a dataset there can still be read, and [Lock] returns [ErrNone] to callers that cannot do without.
package lease

import (
	"errors"
	"os"
	"runtime"

	"github.com/penstock/penstock/internal/vfs"
)

var (
	// ErrBusy is the error of a lock that another process, or another handle of this process, prevents.
	ErrBusy = errors.New("in use")
	// ErrNone is the error of Lock on a system or a file system without locks, such as Lustre that is mounted without
	// flock.
	ErrNone = errors.New("the file system has no locks")
)

// Kind is whether a file is locked together with others or alone.
type Kind bool

// Kinds of locks.
const (
	Together Kind = false
	Alone    Kind = true
)

// Lock locks an open file, and does not wait: the error is ErrBusy while another lock does not allow it.
func Lock(f *os.File, kind Kind) error { return lock(f, kind) }

// Shared opens a file of a folder, as [vfs.OpenIn] does, and locks it together with other readers until it is closed.
// On a file system or a system without such locks it opens the file only.
func Shared(folder, path string) (*os.File, error) { return open(folder, path, Together) }

// Exclusive opens a file as Shared does, and locks it alone until it is closed. The error is ErrBusy while there are
// readers.
func Exclusive(folder, path string) (*os.File, error) { return open(folder, path, Alone) }

// Wait locks an open file or folder together with others, and waits while it is locked alone.
func Wait(f *os.File) error { return wait(f) }

// TryExclusive locks an open file or folder alone. The error is ErrBusy while another handle has a lock on it.
func TryExclusive(f *os.File) error { return lease(f, Alone) }

func open(folder, path string, kind Kind) (*os.File, error) {
	f, err := vfs.OpenIn(folder, path)
	if err != nil {
		return nil, err
	}
	if err := lease(f, kind); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lease is lock that lets file systems without locks pass. Windows does not remove files that are open, which does as
// well.
func lease(f *os.File, kind Kind) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	if err := lock(f, kind); !errors.Is(err, ErrNone) {
		return err
	}
	return nil
}
