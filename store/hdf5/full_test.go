//go:build linux

package hdf5

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
	"github.com/penstock/penstock/store"
)

// fillDisk takes all the space there is, until release.
func fillDisk(t *testing.T, dir string) (release func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(path, make([]byte, freeBytes(t, dir)), 0o666))
	return func() {
		require.NoError(t, os.Remove(path))
	}
}

func freeBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &s))
	return int64(s.Bavail) * s.Bsize
}

// wantsFull checks an error for a full disk: it says so in the user's terms, and nothing is
// left in dir but the names given.
func wantsFull(t *testing.T, err error, dir string, names ...string) {
	t.Helper()
	if !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), "store: ") || !strings.Contains(err.Error(), "no space left") ||
		strings.Count(err.Error(), dir) != 1 || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), ".building") {
		t.Errorf("error of a full disk: %v", err)
	}
	if left := entries(t, dir); len(left) != len(names) {
		t.Errorf("found %v, not %v", left, names)
	}
}

// wantsGood makes sure that libhdf5 still works.
func wantsGood(t *testing.T, dir string) {
	t.Helper()
	s := imageSchema(8, 8)
	path := filepath.Join(dir, "good.h5")
	w, err := Create(path, s, Options{Records: 9})
	require.NoError(t, err)
	defer w.Close()
	appendAll(t, w, s, 9)
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.Remove(path))
}

func TestDiskFullAtCreate(t *testing.T) { eachContainer(t, testDiskFullAtCreate) }

func testDiskFullAtCreate(t *testing.T) {
	dir := smalldisk.New(t, "1m")
	for range 3 {
		_, err := Create(filepath.Join(dir, "x.h5"), imageSchema(100, 100), Options{Records: 1000})
		wantsFull(t, err, dir)
		if !strings.Contains(err.Error(), "bytes that the file needs") {
			t.Error(err)
		}
		release := fillDisk(t, dir)
		_, err = Create(filepath.Join(dir, "x.h5"), imageSchema(100, 100), Options{Records: 1})
		wantsFull(t, err, dir, "filler")
		release()
	}
	wantsGood(t, dir)
}

// Without a reservation, which punching a hole takes back, the disk is full when records are
// written.
func TestDiskFullAtAppend(t *testing.T) { eachContainer(t, testDiskFullAtAppend) }

func testDiskFullAtAppend(t *testing.T) {
	dir := smalldisk.New(t, "4m")
	s := imageSchema(100, 100)
	w, c := createDirect(t, filepath.Join(dir, "x.h5"), s, Options{Records: 100})
	defer w.Close()
	f := c.file
	require.NoError(t, unix.Fallocate(int(f.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, f.arrays[0].values.start, f.arrays[0].values.room))
	release := fillDisk(t, dir)
	r := store.NewRecord(s)
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		err = w.Append(r)
	}
	if _, again := w.Commit(store.Info{}); again != err {
		t.Errorf("Commit after %v: %v", err, again)
	}
	if closing := w.Close(); closing != nil {
		t.Error(closing)
	}
	wantsFull(t, err, dir, "filler")
	release()
	wantsGood(t, dir)
}

// The manifest is larger than what Create reserved for it.
func TestDiskFullAtCommit(t *testing.T) { eachContainer(t, testDiskFullAtCommit) }

func testDiskFullAtCommit(t *testing.T) {
	dir := smalldisk.New(t, "4m")
	s := imageSchema(10, 10)
	for _, records := range []int64{7, 1000} {
		w, err := Create(filepath.Join(dir, "x.h5"), s, Options{Records: records})
		require.NoError(t, err)
		appendAll(t, w, s, 7)
		release := fillDisk(t, dir)
		_, err = w.Commit(store.Info{Skipped: []store.Skipped{{Sample: strings.Repeat("x", 1<<20)}}})
		if closing := w.Close(); closing != nil {
			t.Error(closing)
		}
		wantsFull(t, err, dir, "filler")
		release()
	}
	wantsGood(t, dir)
}

// Another process may hold a lock, and some network file systems refuse locks.
func TestNoLocks(t *testing.T) { eachContainer(t, testNoLocks) }

func testNoLocks(t *testing.T) {
	dir := t.TempDir()
	s := imageSchema(8, 8)
	w, c := createDirect(t, filepath.Join(dir, "x.h5"), s, Options{Records: 9})
	defer w.Close()
	appendAll(t, w, s, 9)
	require.NoError(t, unix.Flock(int(c.file.file.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Error(err)
	}
}
