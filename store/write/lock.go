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

// Lock makes the file name in a folder if it is missing, and locks it until the file is closed or the process ends.
// While another process holds the lock, the error is store.ErrBusy. Lock keeps out the processes of this machine;
// processes of other machines only where the file system shares its locks between machines.
//
// [Unlock] removes the file before it releases the lock. A process that opened the file before can then lock a file
// without a name, which keeps nobody out. So the lock counts only if its file still has the name; otherwise Lock tries
// again.
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

// Unlock removes the file of a lock, and then releases the lock. In the other order, Unlock could remove the file that
// the next process has just locked. A file that cannot be removed stays, and the next process locks it.
func Unlock(folder *os.Root, name string, lock *os.File) {
	_ = folder.Remove(name)
	_ = lock.Close()
}

// removeAbandoned removes the lock file that a killed process has left. A file that a living process has locked stays.
func removeAbandoned(folder *os.Root, name string) {
	if _, err := folder.Lstat(name); err != nil {
		return
	}
	if lock, err := Lock(folder, name); err == nil {
		Unlock(folder, name, lock)
	}
}

// lockName is the name of the lock file that keeps a second builder out. The file is next to the stage and not in it:
// the stage is renamed to the destination while the lock is held.
func lockName(stage string) string { return stage + ".lock" }

// sameFile reports whether the open file f still has the name.
func sameFile(f *os.File, folder *os.Root, name string) bool {
	own, err := f.Stat()
	there, errThere := folder.Lstat(name)
	return err == nil && errThere == nil && os.SameFile(own, there)
}
