package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

// A Dataset has every capability of a Source.
var _ interface {
	loader.RaggedSource
	loader.ChunkedSource
	loader.MappedSource
	loader.FaultSource
	loader.RemoteSource
	loader.DescribedSource
	loader.NamedSource
	loader.ClassedSource
	loader.Identifier
} = (*Dataset)(nil)

// build writes a flat dataset of n records: images of 70x70 bytes, larger than a checksum block,
// labels, and strings of different lengths.
func build(t testing.TB, n int) string {
	t.Helper()
	schema := store.Schema{Fields: []store.Field{
		store.NewField("images", tensor.Uint8, 70, 70),
		store.NewField("labels", tensor.Int64),
		store.NewField("small", tensor.Uint8, 28, 28),
		store.NewRagged("tokens", tensor.Int32),
	}}
	return datasettest.BuildFlat(t, schema, flat.Options{ShardBytes: 1 << 20}, n, store.Info{}, func(i int, r *store.Record) {
		fill(r.Values[0], i)
		fill(r.Values[1], i)
		fill(r.Values[2], i+7)
		for k := range i % 50 {
			r.Values[3] = append(r.Values[3], byte(k), byte(i), 0, 0)
		}
	})
}

func fill(b []byte, i int) {
	x := uint32(i)*2654435761 + 12345
	for k := range b {
		x = x*1664525 + 1013904223
		b[k] = byte(x >> 24)
	}
}

// upload puts the files of a folder into a bucket.
func upload(t testing.TB, dir string, b *membucket.Memory, prefix string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		b.Put(prefix+"/"+e.Name(), data)
	}
}

// uploaded returns a bucket with a dataset of n records under "ds".
func uploaded(t testing.TB, schema store.Schema, opts flat.Options, n int, fill func(i int, r *store.Record)) *membucket.Memory {
	t.Helper()
	b := new(membucket.Memory)
	upload(t, datasettest.BuildFlat(t, schema, opts, n, store.Info{}, fill), b, "ds")
	return b
}

// pair returns a dataset of n records in a bucket, under "ds", and the same on disk.
func pair(t testing.TB, n int) (*membucket.Memory, *mmapds.Dataset) {
	t.Helper()
	dir, b := build(t, n), new(membucket.Memory)
	upload(t, dir, b, "ds")
	local, err := mmapds.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { local.Close() })
	return b, local
}

func open(t testing.TB, b remote.Bucket, key string, opts Options) *Dataset {
	t.Helper()
	if opts.CacheDir == "" {
		opts.CacheDir = filepath.Join(t.TempDir(), "cache")
	}
	d, err := Open(t.Context(), b, key, opts)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// epoch returns all bytes of an epoch, in the order of the loader.
func epoch(t testing.TB, src loader.Source, opts loader.Options, number int) []byte {
	t.Helper()
	ld, err := loader.New(src, opts)
	require.NoError(t, err)
	defer ld.Close()
	var out bytes.Buffer
	for b, err := range ld.Epoch(t.Context(), number) {
		require.NoError(t, err)
		for _, s := range ld.Specs() {
			if s.Ragged {
				fmt.Fprint(&out, b.Offsets(s.Name))
			}
			out.Write(b.Field(s.Name).Bytes())
		}
	}
	return out.Bytes()
}

// A loop makes batches itself if they are views, once the mirror is complete.
func TestWarmWhenComplete(t *testing.T) {
	b, local := pair(t, 600)
	d := open(t, b, "ds", Options{Fields: []string{"images"}})
	spec := d.Specs()[0]
	require.NoError(t, d.Warm(spec.Name, 0, 100))
	if d.Complete() || d.IsWarm(spec.Name, 0, 100) {
		t.Error("some of it is not there, but it is warm")
	}
	for range 2 {
		require.NoError(t, d.Warm(spec.Name, 0, local.Len()))
	}
	if !d.IsWarm(spec.Name, 0, local.Len()) {
		t.Error("all was read, but is not warm")
	}
}

// Errors name the place of a record in the mirror, as far as that is known.
func TestWhere(t *testing.T) {
	b, local := pair(t, 600)
	d := open(t, b, "ds", Options{})
	if got, want := d.Location("images", 300), strings.Replace(local.Location("images", 300), local.Files().Path, d.Path(), 1); got != want || want == "" {
		t.Errorf("%q, want %q", got, want)
	}
	for _, field := range []string{"tokens", "nothing"} { // its offsets have not come; no such field
		if got := d.Location(field, 300); got != "" {
			t.Errorf("%s: %q", field, got)
		}
	}
	require.NoError(t, d.Fill(t.Context()))
	if got, want := d.Location("tokens", 300), strings.Replace(local.Location("tokens", 300), local.Files().Path, d.Path(), 1); got != want || want == "" {
		t.Errorf("%q, want %q", got, want)
	}
}

// Open reports a cache that is too small before it fetches anything.
func TestFits(t *testing.T) {
	b, local := pair(t, 2000)
	size := local.Files().Bytes()
	for limit, fits := range map[int64]bool{size / 2: false, size: false, size * 2: true} {
		d := open(t, b, "ds", Options{CacheBytes: limit})
		err := d.Fits()
		if fits != (err == nil) || err != nil && !strings.Contains(err.Error(), "raise the cache size (--cache-size) to") {
			t.Errorf("a cache of %d bytes for a dataset of %d: %v", limit, size, err)
		}
		if n := d.Stats().Fetched; n != 0 {
			t.Errorf("%d bytes were fetched", n)
		}
	}
}

func TestSameBytesAsLocal(t *testing.T) {
	b, local := pair(t, 2000)
	d := open(t, b, "ds", Options{})
	if d.ID() != local.ID() {
		t.Errorf("id %q, but the local one is %q", d.ID(), local.ID())
	}
	for n, opts := range []loader.Options{
		{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 2},
		{BatchSize: 64, Sampler: sampler.Sequential{}},
		{BatchSize: 10, Sampler: sampler.Shuffle{}, World: loader.World{Rank: 1, Size: 3}},
	} {
		if want, got := epoch(t, local, opts, n), epoch(t, d, opts, n); !bytes.Equal(want, got) {
			t.Fatalf("options %d: other bytes than from the local dataset: %d and %d", n, len(got), len(want))
		}
	}
	if !d.Complete() {
		t.Errorf("all was read, but it is not complete: %+v", d.Stats())
	}
	if st := d.Stats(); st.Fetched != local.Files().Bytes() {
		t.Errorf("%d bytes were fetched of a dataset of %d", st.Fetched, local.Files().Bytes())
	}
	require.NoError(t, d.Close())
	mirror, err := store.Open(d.Dir(), store.OpenOptions{})
	if err != nil {
		t.Fatal("the mirror is not a dataset: ", err)
	}
	if v, err := verify.Dataset(context.Background(), mirror, verify.Options{}); err != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

// span returns the numbers [a, b).
func span(a, b int) []int {
	list := make([]int, b-a)
	for i := range list {
		list[i] = a + i
	}
	return list
}

// A slice of a dataset that is not all there yet has the records of the local one.
func TestSliceOfAPart(t *testing.T) {
	b, local := pair(t, 600)
	for name, opts := range map[string]Options{"views": {}, "copies": {CacheBytes: local.Files().Bytes() / 2}} {
		d := open(t, b, "ds", opts)
		got, err := d.Slice("images", 10, 14)
		require.NoError(t, err)
		want, err := local.Slice("images", 10, 14)
		require.NoError(t, err)
		if d.Complete() || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: other bytes than from the local dataset, or all was fetched", name)
		}
	}
}

// TestFillFetchesNames fills a dataset with names, which no loader reads: the copy is the whole dataset.
func TestFillFetchesNames(t *testing.T) {
	names := store.NewRagged(layout.SourceNameField, tensor.Uint8)
	names.Content = tensor.SourceName
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, 100), names}}
	b := uploaded(t, schema, flat.Options{}, 300, func(i int, r *store.Record) {
		fill(r.Values[0], i)
		r.Values[1] = fmt.Appendf(nil, "folder/%d.jpg", i)
	})
	d := open(t, b, "ds", Options{})
	require.NoError(t, d.Fill(t.Context()))
	whole, err := store.OpenFlat(d.Path())
	require.NoError(t, err)
	if _, err := verify.Dataset(t.Context(), whole, verify.Options{Corrupt: func(e *store.CorruptionError) { t.Error(e) }}); err != nil {
		t.Error(err)
	}
}

// A dataset in a bucket opens as each of its generations. A State of one resumes in another with the same records.
func TestGenerations(t *testing.T) {
	dir, b := build(t, 200), new(membucket.Memory)
	upload(t, dir, b, "ds")
	first := open(t, b, "ds", Options{})
	// a later generation, as its writer leaves it when it ends before it replaces the manifest
	local, err := mmapds.Open(dir)
	require.NoError(t, err)
	defer local.Close()
	one, err := local.Manifest().Encode()
	require.NoError(t, err)
	two := *local.Manifest()
	two.Generation, two.Parent = 2, 1
	words := make([]uint64, (two.Records+63)/64)
	words[0] = 0b1100
	two.Deleted, two.Version = store.NewDeleted(words, two.Records), 4
	if two.ID, err = two.Deleted.ID(two.ID, two.Records); err != nil {
		t.Fatal(err)
	}
	text, err := two.Encode()
	require.NoError(t, err)
	b.Put("ds/"+layout.GenerationName(1), one)
	b.Put("ds/"+layout.GenerationName(2), text)
	b.Put("ds/"+layout.Tags+"/full.json", []byte(`{"generation":1}`))
	for key, want := range map[string]int{"ds": 2, "ds@2": 2, "ds@1": 1, "ds@full": 1} {
		d := open(t, b, key, Options{})
		if m := d.Manifest(); m.Generation != want || d.Len() != int(m.Live()) {
			t.Errorf("%s: generation %d of %d records", key, m.Generation, d.Len())
		}
		if folders, numbers := d.Generations(); len(folders) != 1 || folders[0] != "mem://memory/ds" || numbers[0] != want {
			t.Errorf("%s: %q, %d", key, folders, numbers)
		}
	}
	for _, key := range []string{"ds@3", "ds@nothing"} {
		if _, err := Open(t.Context(), b, key, Options{CacheDir: t.TempDir()}); !errors.Is(err, ErrGeneration) {
			t.Errorf("%s: %v", key, err)
		}
	}
	newest := open(t, b, "ds", Options{})
	if id, err := newest.IDIn([]int{1}); id != first.ID() || err == nil || !strings.Contains(err.Error(), "open mem://memory/ds@1") {
		t.Errorf("%s, %v", id, err)
	}
	if id, err := newest.IDIn([]int{2}); id != newest.ID() || err != nil {
		t.Errorf("%s, %v", id, err)
	}
	value := make([]byte, 4900)
	if err := first.Gather(t.Context(), "images", []int{3}, value); err != nil {
		t.Errorf("a reader of generation 1: %v", err)
	}
}
