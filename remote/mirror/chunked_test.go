package mirror

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

// chunkedFiles returns the files that testdata/chunked.py makes.
func chunkedFiles(t *testing.T) (names []string) {
	t.Helper()
	dir := t.TempDir()
	h5test.Run(t, filepath.Join("testdata", "chunked.py"), dir)
	names, err := filepath.Glob(filepath.Join(dir, "*.h5"))
	if err != nil || len(names) != 18 {
		t.Fatalf("%d files, error %v", len(names), err)
	}
	return names
}

// bucketOf returns a bucket that has a file as x.h5, its bytes, and fields of the file, or all, opened.
func bucketOf(t *testing.T, path string, fields ...string) (*membucket.Memory, []byte, *mmapds.Dataset) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	local, err := mmapds.Open(path, mmapds.WithFields(fields...))
	require.NoError(t, err)
	t.Cleanup(func() { local.Close() })
	b := new(membucket.Memory)
	b.Put("x.h5", data)
	return b, data, local
}

// Files in chunks of every kind give what the local file gives, fetch nothing twice, and the second
// process nothing at all.
func TestChunkedHDF5(t *testing.T) {
	for _, path := range chunkedFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".h5"), func(t *testing.T) {
			b, data, local := bucketOf(t, path)
			cache := filepath.Join(t.TempDir(), "cache")
			d := open(t, b, "x.h5", Options{CacheDir: cache})
			opened := d.Stats()
			opts := loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Seed: 3, Workers: 2}
			want := epoch(t, local, opts, 0)
			if !bytes.Equal(epoch(t, d, opts, 0), want) {
				t.Error("other bytes than from the local file")
			}
			st := d.Stats()
			t.Logf("of %d bytes, %d came in %d requests when it was opened, %d in %d then", len(data), opened.Bytes, opened.Requests, st.Bytes, st.Requests)
			if !d.Complete() || d.ID() != local.ID() || st.Fetched > int64(len(data))*11/10 || st.Wrong != 0 {
				t.Errorf("complete %v, id %q, %+v", d.Complete(), d.ID(), st)
			}
			if opened.Bytes > int64(len(data))/2 || opened.Requests > 64 {
				t.Errorf("opening takes %d requests for %d bytes of %d", opened.Requests, opened.Bytes, len(data))
			}
			d.Close()
			again := open(t, b, "x.h5", Options{CacheDir: cache})
			if !bytes.Equal(epoch(t, again, opts, 0), want) {
				t.Error("other bytes the second time")
			}
			if st := again.Stats(); st.Bytes != 0 || !again.Complete() {
				t.Errorf("the second time %d bytes came; %+v", st.Bytes, st)
			}
		})
	}
}

// Of datasets that were not asked for nothing is fetched but their indexes.
func TestUnwantedDatasetsAreNotFetched(t *testing.T) {
	path := h5test.File(t, `    a = np.random.default_rng(3).integers(0, 200, (150, 100, 100), dtype=np.uint8)
    for name in "images", "masks":
        f.create_dataset(name, data=a, chunks=(1, 100, 100), compression="gzip")
    f["depth"] = a
    f.create_dataset("notes", data=np.full(30000, b"x" * 99, dtype="S100"))
    f.create_dataset("texts", data=np.random.default_rng(4).integers(0, 255, 2000000, dtype=np.uint8).view("S100"), chunks=(500,))
`)
	b, data, local := bucketOf(t, path, "images")
	d := open(t, b, "x.h5", Options{Fields: []string{"images"}})
	opts := loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}}
	if !bytes.Equal(epoch(t, d, opts, 0), epoch(t, local, opts, 0)) {
		t.Error("other bytes than from the local file")
	}
	if st := d.Stats(); st.Fetched > 150*10_000 || !d.Complete() {
		t.Errorf("%d bytes were fetched of %d, with less than 1,500,000 of images; complete %v", st.Fetched, len(data), d.Complete())
	}
}

// TestWholeChunks reads whole chunks of an array in a bucket, as windows do: from the cache and, where it has no room, from
// memory.
func TestWholeChunks(t *testing.T) {
	b, _, local := bucketOf(t, chunkedFile(t, "300"))
	for name, o := range map[string]Options{"cache": {}, "memory": {CacheBytes: 500 << 10, memoryBytes: 1 << 20}} {
		t.Run(name, func(t *testing.T) {
			d := open(t, b, "x.h5", o)
			if shape := d.ChunkShape("images"); !slices.Equal(shape, []int{1, 100, 100}) {
				t.Fatalf("chunks of %v", shape)
			}
			got := make([]byte, 10_000)
			for i := range d.Len() {
				require.NoError(t, d.ReadChunk(t.Context(), "images", []int{i, 0, 0}, got))
				want, err := local.Slice("images", i, i+1)
				if err != nil || !bytes.Equal(got, want.Bytes()) {
					t.Fatalf("chunk %d has other bytes than in the local file: %v", i, err)
				}
			}
		})
	}
}
