package write

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/store"
)

// How long HoldFile waits for another writer, and how often it looks.
const (
	holdWait  = time.Minute
	holdEvery = 10 * time.Millisecond
)

// HoldFile keeps other processes from changing the dataset in the HDF5 file at path, and from replacing the file by an
// append, until release is called. It waits while another one does so, at most a minute: then the error is
// store.ErrBusy. On a file system without locks it is store.ErrUnsupported: two writers would write over each other.
//
// The lock is a file of its own, so that programs that use libhdf5, which locks the HDF5 file, can open that.
func HoldFile(path string) (release func(), err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	name := fileLockName(filepath.Base(path))
	lock, err := Lock(folder, name)
	for begun := time.Now(); errors.Is(err, store.ErrBusy) && time.Since(begun) < holdWait; {
		time.Sleep(holdEvery)
		lock, err = Lock(folder, name)
	}
	switch {
	case errors.Is(err, store.ErrBusy):
		err = fmt.Errorf("another process changes it: %w", store.ErrBusy)
	case errors.Is(err, ErrNoLocks):
		err = fmt.Errorf("%w, without which two writers of an HDF5 file would write over each other: change a copy in "+
			"a folder of .npy files: %w", err, store.ErrUnsupported)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return func() {
		Unlock(folder, name, lock)
		_ = folder.Close()
	}, nil
}

// fileLockName is the name of the lock of HoldFile.
func fileLockName(file string) string { return lockName("." + file + ".commit") }

// HoldFileForReplacement is HoldFile for an append to the file at path, whose newest generation is base: another file
// takes its place. The error is store.ErrBusy if base is not the newest one now.
func HoldFileForReplacement(path string, base *store.Manifest) (release func(), err error) {
	if release, err = HoldFile(path); err != nil {
		return nil, err
	}
	if err := checkReplacement(path, base, "HDF5", "file"); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
