package flat

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
	"github.com/penstock/penstock/store"
	"golang.org/x/sys/unix"
)

// A disk that fills up ends a build, and once there is space again it goes on and ends with
// the bytes of one that always had it.
func TestDiskFull(t *testing.T) {
	disk := smalldisk.New(t, "3m")
	whole := filepath.Join(t.TempDir(), "ds")
	makeDataset(t, whole, 0, 2500, Options{ShardBytes: 1})
	want := foldertest.Files(t, whole)
	filler, dest := filepath.Join(disk, "filler"), filepath.Join(disk, "ds")
	opts := Options{ShardBytes: 1, Journal: &store.Journal{Resume: true}}
	full := 0
	for room := int64(20 << 10); ; room += 90 << 10 {
		leaveRoom(t, disk, filler, room)
		err := fillUp(dest, opts)
		if err == nil {
			break
		}
		full++
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("with room for %d bytes: %v", room, err)
		}
	}
	if full < 5 {
		t.Errorf("the disk was full %d times only", full)
	}
	require.NoError(t, os.Remove(filler))
	sameFolder(t, dest, want)
}

// leaveRoom makes a file that leaves room bytes of the disk free.
func leaveRoom(t *testing.T, disk, filler string, room int64) {
	t.Helper()
	if err := os.Remove(filler); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(disk, &s))
	used := int64(s.Blocks-s.Bfree) * s.Bsize
	f, err := os.Create(filler)
	require.NoError(t, err)
	defer f.Close()
	if n := int64(s.Blocks)*s.Bsize - max(used, room) - (64 << 10); n > 0 {
		require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, n))
	}
}

func fillUp(dest string, opts Options) error {
	w, err := Create(dest, tokenSchema(), opts)
	if err != nil {
		return err
	}
	defer w.Close()
	r := store.NewRecord(tokenSchema())
	for i := int(w.Kept().Records); i < 2500; i++ {
		if i%150 == 0 {
			if err := w.Checkpoint(nil); err != nil {
				return err
			}
		}
		fillTokens(r, i)
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err = w.Commit(store.Info{Skipped: []store.Skipped{{Sample: "0", Reason: "test"}}})
	return err
}
