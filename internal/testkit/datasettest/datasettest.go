// Package datasettest makes small datasets for tests.
package datasettest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

// SmallHDF5 is a file of package meta's tests, made by h5py: see generate.py there. It is found from any package of the
// module, whose tests run in its folder.
func SmallHDF5(name string) string {
	folder := filepath.Join("internal", "hdf5", "meta", "testdata")
	for range 8 {
		if _, err := os.Stat(folder); err == nil {
			break
		}
		folder = filepath.Join("..", folder)
	}
	return filepath.Join(folder, "small-"+name+".h5")
}

// SchemaOf returns the fields of a labeled set of images of 3 channels and 8 x 8 pixels.
func SchemaOf(dtype tensor.DType, layout string, classes ...string) store.Schema {
	shape := []int{3, 8, 8}
	if layout == tensor.HWC {
		shape = []int{8, 8, 3}
	}
	images := store.NewField("images", dtype, shape...)
	images.Layout = layout
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = classes
	return store.Schema{Fields: []store.Field{images, labels}}
}

// Build writes n records; fill sets the values of record i, which are zero before.
func Build(t testing.TB, schema store.Schema, n int, info store.Info, fill func(i int, values [][]byte)) string {
	t.Helper()
	return BuildFlat(t, schema, flat.Options{ShardBytes: 1}, n, info, func(i int, r *store.Record) { fill(i, r.Values) })
}

// BuildFlat writes n records; fill makes record i of one whose values are zero.
func BuildFlat(t testing.TB, schema store.Schema, opts flat.Options, n int, info store.Info,
	fill func(i int, r *store.Record)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds")
	w, err := flat.Create(path, schema, opts)
	require.NoError(t, err)
	Write(t, w, schema, n, info, fill)
	return path
}

// Write writes n records as BuildFlat does, commits them, and closes the writer.
func Write(t testing.TB, w store.Writer, schema store.Schema, n int, info store.Info,
	fill func(i int, r *store.Record)) {
	t.Helper()
	defer w.Close()
	for i := range n {
		r := store.NewRecord(schema)
		fill(i, r)
		require.NoError(t, w.Append(r))
	}
	if _, err := w.Commit(info); err != nil {
		t.Fatal(err)
	}
}

// Animals is a dataset of 600 records in 2 shards: pixel k of record i is i+k, its label i%3.
func Animals(t testing.TB) string {
	return Build(t, SchemaOf(tensor.Uint8, tensor.CHW, "cat", "dog", "owl"), 600, store.Info{}, FillAnimal)
}

func FillAnimal(i int, values [][]byte) {
	for k := range values[0] {
		values[0][k] = byte(i + k)
	}
	values[1][0] = byte(i % 3)
}

// Verify returns what verify.Dataset finds, and the corruptions that it reports.
func Verify(t *testing.T, path string) (verify.Result, []*store.CorruptionError) {
	t.Helper()
	d, err := store.Open(path, store.OpenOptions{})
	require.NoError(t, err)
	var corruptions []*store.CorruptionError
	var reported atomic.Int64
	v, err := verify.Dataset(context.Background(), d, verify.Options{
		Workers:  3,
		Progress: func(n int64) { reported.Add(n) },
		Corrupt:  func(d *store.CorruptionError) { corruptions = append(corruptions, d) },
	})
	require.NoError(t, err)
	if reported.Load() != v.Bytes || v.Corruptions != int64(len(corruptions)) {
		t.Errorf("reported %d bytes and %d corruptions, result %+v", reported.Load(), len(corruptions), v)
	}
	return v, corruptions
}

// Rewrite changes a file that may be read-only.
func Rewrite(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o666))
	require.NoError(t, os.WriteFile(path, change(bytes.Clone(data)), 0o666))
}

func Flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] ^= 0x10
		return b
	}
}
