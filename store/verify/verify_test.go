package verify_test

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

func schema() store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, 20, 30)
	images.Layout = tensor.CHW
	return store.Schema{Fields: []store.Field{images, store.NewField("weights", tensor.Float32, 8), store.NewField("labels", tensor.Int64)}}
}

// write writes n records to a new dataset, in shards of 512, and returns its path.
func write(t testing.TB, s store.Schema, n int, fill func(i int, r *store.Record)) string {
	t.Helper()
	return datasettest.BuildFlat(t, s, flat.Options{ShardBytes: 1}, n, store.Info{}, fill)
}

// build writes n records of images, weights and labels.
func build(t testing.TB, n int) string {
	t.Helper()
	return write(t, schema(), n, func(i int, r *store.Record) {
		for _, v := range r.Values[:2] {
			for k := range v {
				v[k] = byte(i*31+k*7) % 64 // no NaNs
			}
		}
		binary.LittleEndian.PutUint64(r.Values[2], uint64(i))
	})
}

func TestVerifyWholeDataset(t *testing.T) {
	v, corruptions := datasettest.Verify(t, build(t, 1100))
	if want := int64(1100 * (1800 + 32 + 8)); v.Bytes != want || len(corruptions) != 0 || len(v.Unchecked) != 0 {
		t.Errorf("%+v, want %d bytes; %v", v, want, corruptions)
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
		datasettest.Rewrite(t, filepath.Join(path, c.file), datasettest.Flip(int(c.at)))
		_, corruptions := datasettest.Verify(t, path)
		if len(corruptions) != 1 {
			t.Errorf("%s: %d corruptions: %v", c.file, len(corruptions), corruptions)
			continue
		}
		d := corruptions[0]
		if d.Field != c.field || d.Shard != c.shard || d.First != c.first || d.Last != c.last || filepath.Base(d.Path) != c.file || !errors.Is(d, store.ErrCorrupt) {
			t.Errorf("%s byte %d: %v", c.file, c.at, d)
		}
	}
}

func TestVerifyTellsCorruptChecksums(t *testing.T) {
	path := build(t, 10)
	datasettest.Rewrite(t, filepath.Join(path, "labels-00000.crc.npy"), datasettest.Flip(4096))
	if _, corruptions := datasettest.Verify(t, path); len(corruptions) != 2 {
		t.Errorf("want the file and the block: %v", corruptions)
	}
}

func TestVerifyStops(t *testing.T) {
	d, err := store.Open(build(t, 600), store.OpenOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := verify.Dataset(ctx, d, verify.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
