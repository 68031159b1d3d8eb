package zarr_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// schema has fields of every kind.
func schema() store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, 8, 16)
	images.Layout = tensor.CHW
	images.Normalization = &store.Normalization{Scale: 255, Mean: []float64{.5, .25, .125}, Std: []float64{1, 2, 4}}
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"cat", "dog", "zebra"}
	captions := store.NewRagged("captions", tensor.Uint8)
	captions.Content = tensor.Text
	return store.Schema{Fields: []store.Field{
		images, labels, store.NewField("deep/large", tensor.Float32, 2048), store.NewField("brain", tensor.BFloat16, 4),
		store.NewField("half", tensor.Float16, 8), store.NewField("mask", tensor.Bool, 16), captions,
		store.NewRagged("b/ö x", tensor.Float64, 4), store.NewRagged("none", tensor.Int32),
	}}
}

// fill makes record i.
func fill(s store.Schema, r *store.Record, i int) {
	rng := rand.New(rand.NewPCG(uint64(i), 1))
	for k, f := range s.Fields {
		size := f.RecordBytes()
		if f.Ragged {
			n := 0
			if f.Name != "none" {
				n = i * 7 % 23
			}
			r.Values[k] = append(r.Values[k][:0], make([]byte, n*size)...)
		}
		for j := range r.Values[k] {
			r.Values[k][j] = byte(rng.IntN(60)) // no NaN, and it can be compressed
			if f.DType == tensor.Bool {
				r.Values[k][j] &= 1
			}
		}
		if f.Content == tensor.Text {
			for j := range r.Values[k] {
				r.Values[k][j] = 'a' + r.Values[k][j]%26
			}
		}
		if f.Classes != nil {
			binary.LittleEndian.PutUint64(r.Values[k], uint64(i%3))
		}
	}
}

var trainVal = []string{"train", "val"}

// add writes records a to b.
func add(t testing.TB, w store.Writer, err error, splits []string, a, b int) *store.Manifest {
	t.Helper()
	require.NoError(t, err)
	defer w.Close()
	r := store.NewRecord(schema())
	for i := a; i < b; i++ {
		fill(schema(), r, i)
		if splits != nil {
			r.Split = splits[i%5/4]
		}
		require.NoError(t, w.Append(r))
	}
	m, err := w.Commit(store.Info{})
	require.NoError(t, err)
	return m
}

func write(t testing.TB, path string, a, b int, opts zarr.Options) *store.Manifest {
	t.Helper()
	w, err := zarr.Create(path, schema(), opts)
	return add(t, w, err, opts.Splits, a, b)
}

// values returns all values of a dataset, by field, and of a ragged field the lengths of its records.
func values(t testing.TB, path string) map[string][]byte {
	t.Helper()
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	all, order := make(map[string][]byte), make([]int, ds.Len())
	for i := range order {
		order[i] = i
	}
	for _, f := range ds.Schema().Fields {
		if !f.Ragged {
			all[f.Name] = make([]byte, ds.Len()*f.RecordBytes())
			require.NoError(t, ds.Gather(t.Context(), f.Name, order, all[f.Name]))
			continue
		}
		offsets := make([]int64, ds.Len()+1)
		if all[f.Name], err = ds.GatherRagged(t.Context(), f.Name, order, offsets, nil); err != nil {
			t.Fatal(err)
		}
		all[f.Name+" offsets"] = fmt.Append(nil, offsets)
	}
	return all
}

// options are those of datasets, by what is special about them.
func options() map[string]zarr.Options {
	return map[string]zarr.Options{
		"plain": {}, "shards": {ShardBytes: 1 << 20}, "small shards": {ShardBytes: 1}, "splits": {ShardBytes: 1, Splits: trainVal},
		"zstd": {Compress: &zarr.Compression{}}, "zstd shards": {ShardBytes: 1, Compress: &zarr.Compression{Level: 7, ChunkRecords: 3}},
		"zstd splits": {ShardBytes: 1 << 20, Splits: trainVal, Compress: &zarr.Compression{ChunkBytes: 1000}},
	}
}

// A dataset has the values and the id of one in another format, whole or in appended parts, which make the same files.
func TestSameAsFlat(t *testing.T) {
	for name, opts := range options() {
		for _, n := range []int{1, 40, 512, 1300} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				dir := crash.MemoryDir(t)
				other, path := filepath.Join(dir, "flat"), filepath.Join(dir, "x.zarr")
				w, err := flat.Create(other, schema(), flat.Options{Splits: opts.Splits})
				want := add(t, w, err, opts.Splits, 0, n)
				got := write(t, path, 0, n, opts)
				if got.ID != want.ID || got.Records != want.Records {
					t.Errorf("id %s of %d records, want %s of %d", got.ID, got.Records, want.ID, want.Records)
				}
				if !maps.EqualFunc(values(t, path), values(t, other), bytes.Equal) {
					t.Error("other values")
				}
				sound(t, path)
				if opts.Splits != nil || n == 1 {
					return // an append adds a range to each split
				}
				files := foldertest.Files(t, path)
				parts := filepath.Join(dir, "parts.zarr")
				write(t, parts, 0, n*3/5, opts)
				more := opts
				more.Append, more.Compress = true, nil
				write(t, parts, n*3/5, n*3/5+1, more)
				write(t, parts, n*3/5+1, n, more)
				sound(t, parts)
				// The manifest counts generations and names the change, so it has another length, which the root repeats.
				manifest := filepath.Dir(filepath.FromSlash(layout.ZarrManifest))
				for file, text := range foldertest.Files(t, parts) {
					if filepath.Dir(file) != manifest && file != "zarr.json" && text != files[file] {
						t.Errorf("%s: an append makes another file", file)
					}
				}
			})
		}
	}
}

// sound verifies a dataset.
func sound(t testing.TB, path string) {
	t.Helper()
	if n := corruptions(t, path); n != 0 {
		t.Errorf("%s: %d corruptions", path, n)
	}
}

// corruptions counts what is found in a dataset; -1 if it is not opened.
func corruptions(t testing.TB, path string) int64 {
	t.Helper()
	d, err := store.Open(path, store.OpenOptions{})
	if err != nil {
		return -1
	}
	v, err := verify.Dataset(t.Context(), d, verify.Options{})
	if err != nil || v.Corruptions == 0 && (!v.Identity || len(v.Unchecked) > 0) {
		t.Fatal(v, err)
	}
	return v.Corruptions
}

// Records in order are slices of the mapping, across shards.
func TestMapped(t *testing.T) {
	path := filepath.Join(crash.MemoryDir(t), "x.zarr")
	write(t, path, 0, 1300, zarr.Options{ShardBytes: 1})
	if n := len(shards(t, path, "deep/large")); n != 3 {
		t.Errorf("%d shards", n)
	}
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	for _, name := range []string{"images", "labels", "deep/large"} {
		for a := 0; a+64 <= ds.Len(); a += 64 {
			if !ds.Contiguous(name, a, a+64) {
				t.Errorf("%s: records %d to %d are not side by side", name, a, a+63)
			}
		}
	}
}

// shards lists the shards of an array.
func shards(t testing.TB, path, array string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(path, array, "c.*"))
	require.NoError(t, err)
	slices.Sort(list)
	return list
}

// An append shares the full shards with the dataset before it.
func TestAppendLinks(t *testing.T) {
	path := filepath.Join(crash.MemoryDir(t), "x.zarr")
	write(t, path, 0, 1300, zarr.Options{ShardBytes: 1})
	before, err := os.Stat(shards(t, path, "deep/large")[1])
	require.NoError(t, err)
	write(t, path, 1300, 1400, zarr.Options{Append: true})
	after, err := os.Stat(shards(t, path, "deep/large")[1])
	require.NoError(t, err)
	if !os.SameFile(before, after) {
		t.Error("a shard that was full is written again")
	}
	sound(t, path)
}
