//go:build linux

package hdf5

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// noise returns incompressible bytes, so that the disk space needed is known.
func noise(t *testing.T, path string, opts Options) error {
	t.Helper()
	s := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint16, 20, 1000)}}
	w, err := Create(path, s, opts)
	if err != nil {
		return err
	}
	defer w.Close()
	r, rng := store.NewRecord(s), rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		for k := range r.Values[0] {
			r.Values[0][k] = byte(rng.Uint32())
		}
		if int64(i) < w.Kept().Records {
			continue
		}
		if err := w.Append(r); err != nil {
			return err
		}
		if i == 40 {
			if err := w.Checkpoint(nil); err != nil {
				return err
			}
		}
	}
	_, err = w.Commit(store.Info{})
	return err
}

// The disk has room for the records, and for some of the chunks that they become.
func TestDiskFullAtChunks(t *testing.T) { eachContainer(t, testDiskFullAtChunks) }

func testDiskFullAtChunks(t *testing.T) {
	dir := smalldisk.New(t, "3m")
	path := filepath.Join(dir, "x.h5")
	for _, c := range []Compression{{Level: 1, Shuffle: ShuffleOff}, {Level: 6, Shuffle: ShuffleOn, ChunkRecords: 3}} {
		wantsFull(t, noise(t, path, Options{Compress: &c}), dir)
		wantsGood(t, dir)
	}
}

// A build that ran out of space resumes with the same bytes when there is room.
func TestResumeAfterDiskFull(t *testing.T) { eachContainer(t, testResumeAfterDiskFull) }

func testResumeAfterDiskFull(t *testing.T) {
	c := Compression{Level: 1, Shuffle: ShuffleOn}
	whole := filepath.Join(t.TempDir(), "x.h5")
	require.NoError(t, noise(t, whole, Options{Compress: &c}))
	dir := smalldisk.New(t, "5m")
	path := filepath.Join(dir, "x.h5")
	taken := filepath.Join(dir, "taken")
	if err := noise(t, taken, Options{}); err != nil { // 2 MB that are in the way
		t.Fatal(err)
	}
	opts := Options{Compress: &c, Journal: &store.Journal{Resume: true}}
	if err := noise(t, path, opts); err == nil {
		t.Fatal("the disk was large enough")
	}
	if left := entries(t, dir); len(left) != 2 {
		t.Errorf("left %v: not a build that can be resumed", left)
	}
	if !write.Unfinished(path) {
		t.Error("it cannot be resumed")
	}
	require.NoError(t, os.Remove(taken))
	require.NoError(t, noise(t, path, opts))
	if !bytes.Equal(read(t, path), read(t, whole)) {
		t.Error("other bytes than those of a build that was not interrupted")
	}
}
