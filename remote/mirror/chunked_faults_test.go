package mirror

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// chunkedFile returns a file of n images of 100 x 100, each a chunk that does not become much
// smaller, with labels between them.
func chunkedFile(t *testing.T, n string) string {
	t.Helper()
	return h5test.File(t, "    n = "+n+`
    images = np.random.default_rng(3).integers(0, 200, (n, 100, 100), dtype=np.uint8)
    d = f.create_dataset("images", images.shape, images.dtype, chunks=(1, 100, 100), compression="gzip", compression_opts=1)
    l = f.create_dataset("labels", (n,), np.int64, chunks=(50,))
    for i in range(0, n, 100):
        d[i:i + 100], l[i:i + 100] = images[i:i + 100], np.arange(i, i + 100)
        f.flush()
`)
}

var packedOptions = loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Seed: 2, Workers: 2}

// The first batch needs the index, which lies all over the file, and its own chunks.
func TestFirstBatchOfChunks(t *testing.T) {
	const trip = 50 * time.Millisecond
	b, data, local := bucketOf(t, chunkedFile(t, "4000"))
	want := make([]byte, 64*10_000)
	list := rand.New(rand.NewPCG(1, 2)).Perm(4000)[:64]
	require.NoError(t, local.Gather(t.Context(), "images", list, want))
	synctest.Test(t, func(t *testing.T) {
		link := &shaped{Bucket: b, trip: trip, rate: 200e6}
		began := time.Now()
		d := open(t, link, "x.h5", Options{})
		opened := time.Since(began)
		got := make([]byte, len(want))
		if err := d.Gather(t.Context(), "images", list, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("error %v, or other bytes", err)
		}
		first := time.Since(began)
		link.mu.Lock()
		defer link.mu.Unlock()
		t.Logf("opened after %.1f trips, the first 64 of 4,000 records after %.1f, %d requests for %d of %d bytes",
			float64(opened)/float64(trip), float64(first)/float64(trip), link.requests, link.bytes, len(data))
		if first > 12*trip || link.bytes > int64(len(data))/10 {
			t.Errorf("the first batch took %v, and %d bytes of %d", first, link.bytes, len(data))
		}
	})
}

// A cache that is smaller than the file keeps its bound, one on a small disk says so, and one that
// has room for little else than the metadata holds chunks in memory.
func TestChunksInLittleRoom(t *testing.T) {
	b, _, local := bucketOf(t, chunkedFile(t, "1500")) // 13 MB
	for _, c := range []struct {
		name string
		opts Options
		disk string
		ok   func(st Stats, used int64) bool
	}{
		{"bound", Options{CacheBytes: 6 << 20}, "", func(st Stats, used int64) bool { return st.Evicted > 0 && used <= 7<<20 }},
		{"memory", Options{CacheBytes: 700 << 10, memoryBytes: 1 << 20}, "", func(st Stats, _ int64) bool { return st.Held > 0 && st.Streaming != "" }},
		{"disk", Options{CacheBytes: 1 << 30, memoryBytes: 2 << 20}, "4m", func(st Stats, _ int64) bool {
			return st.Held > 0 && strings.Contains(st.Streaming, "no space left")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.disk != "" {
				c.opts.CacheDir = filepath.Join(smalldisk.New(t, c.disk), "cache")
			}
			d := open(t, b, "x.h5", c.opts)
			for n := range 2 {
				if !bytes.Equal(epoch(t, d, packedOptions, n), epoch(t, local, packedOptions, n)) {
					t.Fatal("other bytes than from the local file")
				}
			}
			if st, used := d.Stats(), folderBytes(d.Dir()); !c.ok(st, used) {
				t.Errorf("the mirror has %d bytes; %+v", used, st)
			}
		})
	}
}

// A cache that has no room for the metadata returns an error that says so, whether the limit is its
// bound or the disk.
func TestNoRoomForMetadata(t *testing.T) {
	b, _, _ := bucketOf(t, chunkedFile(t, "300"))
	for _, opts := range []Options{{CacheBytes: 1}, {CacheDir: filepath.Join(smalldisk.New(t, "128k"), "cache"), CacheBytes: 1 << 30}} {
		if opts.CacheDir == "" {
			opts.CacheDir = filepath.Join(t.TempDir(), "cache")
		}
		d, err := Open(t.Context(), b, "x.h5", opts)
		if err == nil {
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "needs room for all its metadata") {
			t.Errorf("%v", err)
		}
	}
}

// Metadata that was changed on disk is fetched again, also in a mirror that holds everything.
func TestPoisonedMetadataInFullMirror(t *testing.T) {
	b, data, local := bucketOf(t, chunkedFile(t, "600"))
	opts := Options{CacheDir: filepath.Join(t.TempDir(), "cache"), CacheBytes: 2 << 20}
	d := open(t, b, "x.h5", opts)
	epoch(t, d, packedOptions, 0)
	d.Close()
	poison(t, filepath.Join(d.Dir(), hdf5Name), 60)
	opts.CacheBytes = folderBytes(d.Dir()) + 1000
	again := open(t, b, "x.h5", opts)
	if !bytes.Equal(epoch(t, again, packedOptions, 0), epoch(t, local, packedOptions, 0)) {
		t.Errorf("other bytes than from the local file of %d", len(data))
	}
}

// The mirror finds chunks and metadata that were changed on disk, and fetches them again.
func TestPoisonedChunks(t *testing.T) {
	b, data, local := bucketOf(t, chunkedFile(t, "300"))
	want := epoch(t, local, packedOptions, 0)
	cache := filepath.Join(t.TempDir(), "cache")
	d := open(t, b, "x.h5", Options{CacheDir: cache})
	epoch(t, d, packedOptions, 0)
	d.Close()
	for _, at := range []int{60, len(data) / 2} {
		poison(t, filepath.Join(d.Dir(), hdf5Name), at)
	}
	again := open(t, b, "x.h5", Options{CacheDir: cache})
	if !bytes.Equal(epoch(t, again, packedOptions, 0), want) {
		t.Error("a poisoned mirror gave its poison")
	}
	if st := again.Stats(); st.Poisoned != 1 || st.Fetched > int64(len(data))/2 {
		t.Errorf("one block was poisoned, and the metadata: %+v", st)
	}
}

// flipping is a bucket that changes a byte in each of the next left reads.
type flipping struct {
	remote.Bucket
	left atomic.Int64
}

func (f *flipping) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	b, err := f.Bucket.ReadRange(ctx, key, off, n, etag)
	if err != nil || f.left.Add(-1) < 0 {
		return b, err
	}
	data, err := io.ReadAll(b)
	data[len(data)/2] ^= 1
	b.ReadCloser = io.NopCloser(bytes.NewReader(data))
	return b, err
}

// A chunk that was changed on its way cannot be inflated, and is fetched again: when it is first
// needed, and also when it is not before all is in the mirror.
func TestChunksThatCameWrong(t *testing.T) {
	b, _, local := bucketOf(t, chunkedFile(t, "300"))
	want := epoch(t, local, packedOptions, 0)
	for name, all := range map[string]bool{"needed": false, "filled": true} {
		t.Run(name, func(t *testing.T) {
			f := &flipping{Bucket: b}
			d := open(t, f, "x.h5", Options{requestBytes: 64 << 10})
			f.left.Store(12)
			if all {
				if err := d.Fill(t.Context()); err != nil || !d.Complete() {
					t.Fatalf("complete %v, error %v", d.Complete(), err)
				}
			}
			if !bytes.Equal(epoch(t, d, packedOptions, 0), want) {
				t.Error("other bytes than from the local file")
			}
			if st := d.Stats(); st.Wrong == 0 || !d.Complete() {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A chunk that is corrupt in the bucket is an error of its records, with its location.
func TestCorruptChunkInBucket(t *testing.T) {
	path := chunkedFile(t, "300")
	b, data, local := bucketOf(t, path)
	data = bytes.Clone(data)
	data[len(data)/2] ^= 1
	b.Put("x.h5", data)
	d := open(t, b, "x.h5", Options{})
	bad := 0
	want, got := make([]byte, 10_000), make([]byte, 10_000)
	for i := range 300 {
		require.NoError(t, local.Gather(t.Context(), "images", []int{i}, want))
		err := d.Gather(t.Context(), "images", []int{i}, got)
		switch {
		case errors.Is(err, store.ErrCorrupt) && strings.Contains(err.Error(), `dataset "/images": chunk [`) && strings.Contains(err.Error(), "x.h5"):
			bad++
		case err != nil || !bytes.Equal(got, want):
			t.Fatalf("record %d: error %v, or other bytes", i, err)
		}
	}
	if bad != 1 {
		t.Errorf("%d records are corrupt, want 1", bad)
	}
}

// The clock stands still while anything computes.
func TestFaultsLoseNoChunk(t *testing.T) {
	b, _, local := bucketOf(t, chunkedFile(t, "600"))
	want := epoch(t, local, packedOptions, 0)
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Bucket: b, part: 0.2, random: rand.New(rand.NewPCG(1, 2)), faults: make(map[string]int), struck: make(map[string]int)}
		d := open(t, f, "x.h5", Options{requestBytes: 64 << 10})
		if !bytes.Equal(epoch(t, d, packedOptions, 0), want) {
			t.Error("other bytes than from the local file")
		}
		if st := d.Stats(); len(f.faults) != 5 || st.Retries == 0 || st.Fetched > int64(len(want))+1<<20 {
			t.Errorf("%v; %+v", f.faults, st)
		}
	})
}

// Two that open the mirror at the same time fetch it once between them.
func TestChunksAreShared(t *testing.T) {
	b, data, local := bucketOf(t, chunkedFile(t, "600"))
	want := epoch(t, local, packedOptions, 0)
	cache := filepath.Join(t.TempDir(), "cache")
	var all sync.WaitGroup
	var fetched atomic.Int64
	for range 3 {
		all.Go(func() {
			d, err := Open(t.Context(), b, "x.h5", Options{CacheDir: cache})
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			if !bytes.Equal(epoch(t, d, packedOptions, 0), want) {
				t.Error("other bytes than from the local file")
			}
			fetched.Add(d.Stats().Fetched)
		})
	}
	all.Wait()
	if n := fetched.Load(); n > int64(len(data))*11/10 {
		t.Errorf("%d bytes were fetched of a file of %d", n, len(data))
	}
}

// Indexes that cannot be true are refused, and say where.
func TestHostileChunkIndexes(t *testing.T) {
	path := h5test.File(t, `    a = np.random.default_rng(3).integers(0, 200, (300, 100, 100), dtype=np.uint8)
    f.create_dataset("images", data=a, chunks=(1, 100, 100), compression="gzip")
    f["plain"] = a
`)
	_, data, _ := bucketOf(t, path)
	file, err := meta.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	find := func(name string) *meta.Dataset {
		d, err := file.Dataset(name)
		require.NoError(t, err)
		return d
	}
	table, err := find("images").Chunks()
	require.NoError(t, err)
	address := func(at int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(at)) }
	third, ninth := table.Chunks[3], table.Chunks[9]
	for name, c := range map[string]struct {
		to   int64
		says string
	}{
		"overlapping":     {ninth.Offset + 16, "two chunks share bytes"},
		"outside":         {1 << 50, "are not in the file"},
		"over the end":    {int64(len(data)) - 8, "are not in the file"},
		"another dataset": {find("plain").Layout.Offset + 4096, "lie in another dataset"},
	} {
		t.Run(name, func(t *testing.T) {
			if n := bytes.Count(data, address(third.Offset)); n != 1 {
				t.Fatalf("the address of a chunk occurs %d times", n)
			}
			b := new(membucket.Memory)
			b.Put("x.h5", bytes.Replace(data, address(third.Offset), address(c.to), 1))
			d, err := Open(t.Context(), b, "x.h5", Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
			if err == nil {
				d.Close()
			}
			if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "x.h5") {
				t.Errorf("%v", err)
			}
		})
	}
}

// With mutated metadata, the mirror returns what the local file returns, or an error.
func TestMutatedMetadata(t *testing.T) {
	for _, version := range []string{"earliest", "latest"} {
		path := h5test.File(t, `    pass
with h5py.File(sys.argv[1], "w", libver="`+version+`") as f:
    a = np.random.default_rng(3).integers(0, 200, (120, 100, 100), dtype=np.uint8)
    f.create_dataset("images", data=a, chunks=(1, 100, 100), maxshape=(None, 100, 100), compression="lzf")
    f["labels"] = np.arange(120)
`)
		_, data, _ := bucketOf(t, path)
		c, err := (&opener{&cache{}}).contents(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(4, 5))
		for range 150 {
			bad := bytes.Clone(data)
			for range 1 + random.IntN(2) {
				p := c.known[random.IntN(len(c.known))]
				bad[p.off+random.Int64N(p.n)] ^= 1 << random.IntN(8)
			}
			compareMutated(t, bad)
		}
	}
}

func compareMutated(t *testing.T, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.h5")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	b := new(membucket.Memory)
	b.Put("x.h5", data)
	d, err := Open(t.Context(), b, "x.h5", Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	if err != nil {
		if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("error of no known kind: %v", err)
		}
		return
	}
	defer d.Close()
	local, err := mmapds.Open(path)
	if err != nil {
		t.Errorf("the local file cannot be opened (%v), the mirror can", err)
		return
	}
	defer local.Close()
	for _, s := range local.Specs() {
		n := min(local.Len(), 200)
		want, got := make([]byte, n*s.RecordBytes()), make([]byte, n*s.RecordBytes())
		localErr, err := local.Gather(t.Context(), s.Name, span(0, n), want), d.Gather(t.Context(), s.Name, span(0, n), got)
		if (err == nil) != (localErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("field %s: error %v of the mirror, %v of the local file, or other bytes", s.Name, err, localErr)
		}
	}
}
