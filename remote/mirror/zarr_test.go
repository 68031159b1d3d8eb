package mirror

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// buildZarr writes a dataset with the records of buildHDF5, in shards of less than 2 MiB, and puts it into a bucket.
func buildZarr(t *testing.T, n int, opts zarr.Options) (*membucket.Memory, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ds.zarr")
	opts.ShardBytes = 1
	w, err := zarr.Create(dir, recordSchema, opts)
	require.NoError(t, err)
	writeRecords(t, w, n, 50, opts.Splits)
	b := new(membucket.Memory)
	putFiles(t, b, dir, "a/ds.zarr")
	return b, dir
}

// putFiles puts a file, or those of a folder and of the folders in it, into a bucket.
func putFiles(t *testing.T, b *membucket.Memory, dir, key string) {
	t.Helper()
	for name, data := range foldertest.Files(t, dir) {
		b.Put(path.Join(key, filepath.ToSlash(name)), []byte(data))
	}
}

var zarrOptions = map[string]zarr.Options{
	"plain": {}, "splits": {Splits: []string{"train", "val"}}, "zstd": {Compress: &zarr.Compression{Level: 1}},
}

// A dataset in Zarr gives what it gives locally: the mirror is the dataset, and the second time nothing is fetched.
func TestZarr(t *testing.T) {
	for name, o := range zarrOptions {
		t.Run(name, func(t *testing.T) {
			b, dir := buildZarr(t, 1500, o)
			local, err := mmapds.Open(dir)
			require.NoError(t, err)
			defer local.Close()
			opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 2}
			want := epoch(t, local, opts, 0)
			cache := filepath.Join(t.TempDir(), "cache")
			d := open(t, b, "a/ds.zarr", Options{CacheDir: cache})
			size := int64(0)
			for _, data := range foldertest.Files(t, dir) {
				size += int64(len(data))
			}
			if st := d.Stats(); name != "zstd" && st.Fetched > 0 {
				t.Errorf("opening fetched %d bytes of records", st.Fetched)
			}
			if !bytes.Equal(epoch(t, d, opts, 0), want) || d.ID() != local.ID() {
				t.Error("other bytes than from the local dataset")
			}
			require.NoError(t, d.Fill(t.Context()))
			if st := d.Stats(); st.Fetched > size || !d.Complete() {
				t.Errorf("%d bytes were fetched of %d; complete %v", st.Fetched, size, d.Complete())
			}
			d.Close()
			whole, err := store.OpenZarr(d.Path(), store.OpenOptions{})
			require.NoError(t, err)
			if v, err := verify.Dataset(t.Context(), whole, verify.Options{}); err != nil || v.Corruptions > 0 || !v.Identity {
				t.Errorf("%+v, %v", v, err)
			}
			if _, unknown, err := layout.Of(whole).CheckZarr(whole.Path, whole.Manifest.Metadata); err != nil || len(unknown) > 0 {
				t.Error(unknown, err)
			}
			again := open(t, b, "a/ds.zarr", Options{CacheDir: cache})
			if !bytes.Equal(epoch(t, again, opts, 0), want) || again.Stats().Fetched > 0 || again.Stats().Requests > 7 {
				t.Errorf("the second time: %+v", again.Stats())
			}
		})
	}
}

// A part of the fields, or of the records, does not cost the rest, and a cache that is too small is enough.
func TestZarrParts(t *testing.T) {
	for name, o := range map[string]zarr.Options{"plain": {Splits: []string{"train", "val"}}, "zstd": {Splits: []string{"train", "val"}, Compress: &zarr.Compression{}}} {
		b, dir := buildZarr(t, 1500, o)
		for _, c := range []struct {
			fields []string
			split  string
			cache  int64
		}{{split: "val"}, {fields: []string{"labels", "tokens"}}, {fields: []string{"labels", "tokens"}, cache: 400 << 10}, {cache: 12 << 20}} {
			local, err := mmapds.Open(dir, mmapds.WithFields(c.fields...), mmapds.WithSplit(c.split))
			require.NoError(t, err)
			defer local.Close()
			opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 2}
			d := open(t, b, "a/ds.zarr", Options{Fields: c.fields, Split: c.split, CacheBytes: c.cache})
			if !bytes.Equal(epoch(t, d, opts, 0), epoch(t, local, opts, 0)) {
				t.Errorf("%s %+v: other bytes than from the local dataset", name, c)
			}
			if n := d.Stats().Bytes; c.fields != nil && n > 600<<10 {
				t.Errorf("%s %+v: %d bytes were read of %d", name, c, n, local.Files().Bytes())
			}
		}
	}
}

// The error of Zarr that penstock did not write says what to do.
func TestOtherZarr(t *testing.T) {
	for _, name := range []string{"zarr.json", ".zgroup", ".zarray"} {
		b := new(membucket.Memory)
		b.Put("era5.zarr/"+name, []byte("{}"))
		if _, err := Open(t.Context(), b, "era5.zarr", Options{CacheDir: filepath.Join(t.TempDir(), "cache")}); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "with preprocess") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A split of a ragged field begins and ends at offsets that are fetched for that.
func TestSplitOfManyRecords(t *testing.T) {
	schema := store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int32)}}
	splits := []string{"train", "val"}
	for name, create := range map[string]func(path string) (store.Writer, error){
		"ds.zarr": func(path string) (store.Writer, error) {
			return zarr.Create(path, schema, zarr.Options{Splits: splits})
		},
		"ds.h5": func(path string) (store.Writer, error) {
			return hdf5.Create(path, schema, hdf5.Options{Splits: splits})
		},
	} {
		path := filepath.Join(t.TempDir(), name)
		w, err := create(path)
		require.NoError(t, err)
		defer w.Close()
		r := store.NewRecord(schema)
		for i := range 150_000 { // more offsets than Open fetches of an HDF5 file
			r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0][:0], uint32(i))[:i%2*4]
			r.Split = splits[i/100_000]
			require.NoError(t, w.Append(r))
		}
		if _, err := w.Commit(store.Info{}); err != nil {
			t.Fatal(err)
		}
		b := new(membucket.Memory)
		putFiles(t, b, path, name)
		local, err := mmapds.Open(path, mmapds.WithSplit("val"))
		require.NoError(t, err)
		defer local.Close()
		opts := loader.Options{BatchSize: 4000, Sampler: sampler.Shuffle{}, Seed: 3}
		d := open(t, b, name, Options{Split: "val"})
		if !bytes.Equal(epoch(t, d, opts, 0), epoch(t, local, opts, 0)) {
			t.Errorf("%s: other bytes than from the local dataset", name)
		}
	}
}

// A corrupt file in the mirror, or a flip on the way, is fetched again.
func TestZarrRepaired(t *testing.T) {
	b, dir := buildZarr(t, 600, zarr.Options{})
	local, err := mmapds.Open(dir)
	require.NoError(t, err)
	defer local.Close()
	opts := loader.Options{BatchSize: 64, Workers: 2}
	want := epoch(t, local, opts, 0)
	cache := filepath.Join(t.TempDir(), "cache")
	d := open(t, b, "a/ds.zarr", Options{CacheDir: cache})
	require.NoError(t, d.Fill(t.Context()))
	d.Close()
	for name, text := range foldertest.Files(t, d.Path()) {
		if strings.HasPrefix(name, "penstock/crc") {
			continue
		}
		data := []byte(text)
		data[len(data)/3] ^= 4
		require.NoError(t, os.WriteFile(filepath.Join(d.Path(), name), data, 0o600))
		again := open(t, b, "a/ds.zarr", Options{CacheDir: cache})
		if !bytes.Equal(epoch(t, again, opts, 0), want) {
			t.Errorf("%s: a poisoned mirror gave its poison", name)
		}
		again.Close()
	}
	flipped := &flippedOnce{Bucket: b, seen: make(map[string]bool)}
	if d := open(t, flipped, "a/ds.zarr", Options{}); !bytes.Equal(epoch(t, d, opts, 0), want) || len(flipped.seen) < 8 {
		t.Errorf("other bytes, or only %d files with a flip", len(flipped.seen))
	}
}

// flippedOnce flips a bit of what it returns first of each object but the checksums, which nothing vouches for.
type flippedOnce struct {
	remote.Bucket
	mu   sync.Mutex
	seen map[string]bool
}

func (f *flippedOnce) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	b, err := f.Bucket.ReadRange(ctx, key, off, n, etag)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.seen[key] || strings.HasSuffix(key, layout.ManifestName) || strings.HasSuffix(key, layout.ZarrManifest) || strings.Contains(key, "/crc/") && strings.HasSuffix(key, layout.ZarrSums) {
		return b, err
	}
	f.seen[key] = true
	data, err := io.ReadAll(b)
	data = bytes.Clone(data)
	data[len(data)/2] ^= 1
	b.ReadCloser = io.NopCloser(bytes.NewReader(data))
	return b, err
}
