package write

import (
	"errors"
	"os"

	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// ErrNoLocks is the error of Lock on a file system without locks, such as Lustre that is mounted without flock.
var ErrNoLocks = lease.ErrNone

// Lock makes the file name in a folder if it is not there, and locks it until it is closed or the process ends. While
// another process holds the lock, the error is store.ErrBusy. [Unlock] removes the file before it lets go, so a lock
// counts only while its file still has the name. It keeps out the processes of this machine; processes elsewhere only
// where the file system shares its locks between machines.
func Lock(folder *os.Root, name string) (*os.File, error) {
	for {
		lock, err := private.OpenLock(folder, name)
		if err != nil {
			return nil, err
		}
		if err := lockFile(lock); err != nil {
			if errors.Is(err, ErrNoLocks) {
				_ = folder.Remove(name)
			}
			return nil, errors.Join(err, lock.Close())
		}
		if sameFile(lock, folder, name) {
			return lock, nil
		}
		_ = lock.Close()
	}
}

// lockFile locks a file alone until it is closed or the process ends.
func lockFile(f *os.File) error {
	err := lease.Lock(f, lease.Alone)
	if errors.Is(err, lease.ErrBusy) {
		return store.ErrBusy
	}
	return err
}

// Unlock removes the file of a lock, and lets go. A file that cannot be removed is locked by the next process.
func Unlock(folder *os.Root, name string, lock *os.File) {
	_ = folder.Remove(name)
	_ = lock.Close()
}

// removeAbandoned removes the file of a lock that a killed process has left.
func removeAbandoned(folder *os.Root, name string) {
	if _, err := folder.Lstat(name); err != nil {
		return
	}
	if lock, err := Lock(folder, name); err == nil {
		Unlock(folder, name, lock)
	}
}

// lockName is the name of the file that keeps a second builder out. It is next to the stage, so that the
// lock lasts until the stage has become the destination.
func lockName(stage string) string { return stage + ".lock" }

// sameFile reports whether f is still the file of that name.
func sameFile(f *os.File, folder *os.Root, name string) bool {
	own, err := f.Stat()
	there, errThere := folder.Lstat(name)
	return err == nil && errThere == nil && os.SameFile(own, there)
}
