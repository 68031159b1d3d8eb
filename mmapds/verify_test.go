package mmapds_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

func verify(t *testing.T, path string) (mmapds.Verified, []*mmapds.Damage) {
	t.Helper()
	d, err := mmapds.Locate(path)
	if err != nil {
		t.Fatal(err)
	}
	var damages []*mmapds.Damage
	var told atomic.Int64
	v, err := mmapds.Verify(context.Background(), d, mmapds.VerifyOptions{
		Workers:  3,
		Progress: func(n int64) { told.Add(n) },
		Damaged:  func(d *mmapds.Damage) { damages = append(damages, d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if told.Load() != v.Bytes || v.Damages != int64(len(damages)) {
		t.Errorf("told of %d bytes and %d damages, result %+v", told.Load(), len(damages), v)
	}
	return v, damages
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 0x10
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// cut makes a file of a dataset shorter.
func cut(t *testing.T, path string, size int64) {
	t.Helper()
	if err := errors.Join(os.Chmod(path, 0o666), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyWholeDataset(t *testing.T) {
	v, damages := verify(t, build(t, 1100))
	if want := int64(1100 * (1800 + 32 + 8)); v.Bytes != want || len(damages) != 0 || len(v.Unchecked) != 0 {
		t.Errorf("%+v, want %d bytes; %v", v, want, damages)
	}
}

func TestVerifyFindsEveryFlippedByte(t *testing.T) {
	for _, c := range []struct {
		file        string
		at          int64
		field       string
		shard       int
		first, last int64
	}{
		{"images-00000.npy", 4096, "images", 0, 0, 35},
		{"images-00001.npy", 4096 + 40*1800 + 9, "images", 1, 512 + 36, 512 + 71},
		{"images-00002.npy", 4096 + 75*1800 + 1799, "images", 2, 1024 + 72, 1024 + 75},
		{"labels-00002.npy", 4096 + 75*8, "labels", 2, 1024, 1099},
		{"weights-00001.npy", 4096 + 100, "weights", 1, 512, 1023},
	} {
		path := build(t, 1100)
		flip(t, filepath.Join(path, c.file), c.at)
		_, damages := verify(t, path)
		if len(damages) != 1 {
			t.Errorf("%s: %d damages: %v", c.file, len(damages), damages)
			continue
		}
		d := damages[0]
		if d.Field != c.field || d.Shard != c.shard || d.First != c.first || d.Last != c.last || filepath.Base(d.Path) != c.file || !errors.Is(d, store.ErrCorrupt) {
			t.Errorf("%s byte %d: %v", c.file, c.at, d)
		}
	}
}

func TestVerifyTellsDamagedChecksums(t *testing.T) {
	path := build(t, 10)
	flip(t, filepath.Join(path, "labels-00000.crc.npy"), 4096)
	if _, damages := verify(t, path); len(damages) != 2 {
		t.Errorf("want the file and the block: %v", damages)
	}
}

func TestVerifyStops(t *testing.T) {
	d, err := mmapds.Locate(build(t, 600))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := mmapds.Verify(ctx, d, mmapds.VerifyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
