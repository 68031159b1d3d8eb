package chunk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
)

// small returns a committed file.
func small(t testing.TB, name string) []byte {
	t.Helper()
	return readFile(t, filepath.Join("testdata", name))
}

// The committed files hold (i/4)%50 in every dataset but rest, whose records 7 and 8 are 3
// and all others the fill value 7.
func TestSmallFiles(t *testing.T) {
	for _, name := range []string{"small-old.h5", "small-new.h5", "small-v5.h5"} {
		file := small(t, name)
		if d, err := openBytes(t, file).Dataset("gzip"); err != nil || (name == "small-v5.h5") != (d.Layout.Version == 5) {
			t.Errorf("%s: layout version %d, error %v", name, d.Layout.Version, err)
		}
		for path, width := range map[string]int{"gzip": 1, "all": 2, "lzf": 4, "plain": 4, "sum": 8, "flat": 8, "rest": 2} {
			r := mapped(t, file, path, Options{})
			got := all(t, r)
			if path == "rest" {
				for i := range 200 {
					if want := map[bool]byte{true: 3, false: 7}[i/4 == 7 || i/4 == 8]; got[2*i] != want || got[2*i+1] != 0 {
						t.Fatalf("%s: rest: element %d is %v", name, i, got[2*i:2*i+2])
					}
				}
				continue
			}
			for i := 0; i < len(got)/width && path != "lzf" && path != "flat"; i++ {
				if got[i*width] != byte(i/4%50) || width > 1 && got[i*width+1] != 0 {
					t.Fatalf("%s: %s: element %d is %v", name, path, i, got[i*width:(i+1)*width])
				}
			}
		}
	}
}

// countingReader counts the reads, and fails those of one place.
type countingReader struct {
	io.ReaderAt
	n    atomic.Int64
	fail error
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	c.n.Add(1)
	if c.fail != nil {
		return 0, c.fail
	}
	return c.ReaderAt.ReadAt(b, off)
}

func counted(t *testing.T, path string, opts Options) (*Reader, *countingReader) {
	t.Helper()
	file := small(t, "small-new.h5")
	d, err := openBytes(t, file).Dataset(path)
	require.NoError(t, err)
	src := &countingReader{ReaderAt: bytes.NewReader(file)}
	r, err := NewReader(src, d, opts)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r, src
}

// A chunk is read once for a batch, and once for neighbors that are read one by one.
func TestEachChunkOnce(t *testing.T) {
	for path, chunks := range map[string]int64{"gzip": 5, "all": 4 * 5, "lzf": 4, "sum": 4} {
		r, src := counted(t, path, Options{})
		n := int(r.Len())
		order := rand.New(rand.NewPCG(1, 1)).Perm(n)
		order = append(order, order...)
		dst := make([]byte, len(order)*r.RecordBytes())
		require.NoError(t, r.Gather(t.Context(), dst, order))
		if got := src.n.Load(); got != chunks {
			t.Errorf("%s: a batch of all records read %d chunks, there are %d", path, got, chunks)
		}
		r, src = counted(t, path, Options{})
		for i := range n {
			require.NoError(t, r.Records(t.Context(), dst[:r.RecordBytes()], int64(i), int64(i)+1))
		}
		if got := src.n.Load(); got != chunks {
			t.Errorf("%s: records in order read %d chunks, there are %d", path, got, chunks)
		}
	}
}

// With little memory the cache holds one chunk a worker and one more, and results are right.
func TestCacheIsBounded(t *testing.T) {
	pool := NewPool(2)
	defer pool.Close()
	r := mapped(t, small(t, "small-old.h5"), "all", Options{Pool: pool, CacheBytes: 1})
	want := all(t, r)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			dst := make([]byte, 3*r.RecordBytes())
			for range 200 {
				i := rng.IntN(int(r.Len()) - 2)
				if err := r.Records(t.Context(), dst, int64(i), int64(i)+3); err != nil || !bytes.Equal(dst, want[i*60:(i+3)*60]) {
					t.Errorf("records from %d: wrong, error %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(r.data.cache.entries); n > 3 {
		t.Errorf("%d chunks in the cache, want at most 3", n)
	}
}

// The error names dataset, chunk, place and filter, is the same in every run, and its cause
// is known.
func TestErrorNamesChunk(t *testing.T) {
	file := bytes.Clone(small(t, "small-new.h5"))
	d, err := openBytes(t, file).Dataset("all")
	require.NoError(t, err)
	table, err := d.Chunks()
	require.NoError(t, err)
	for _, i := range []int{7, 3, 12} {
		c := table.Chunks[i]
		file[c.Offset+c.Size-1] ^= 1 // the checksum
	}
	c := table.Chunks[3]
	for range 20 {
		r := mapped(t, file, "all", Options{})
		err := r.Records(t.Context(), make([]byte, r.Len()*int64(r.RecordBytes())), 0, r.Len())
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, meta.ErrCorrupt) {
			t.Fatalf("error %v", err)
		}
		if e.Dataset != "/all" || e.Filter != "fletcher32" || e.Offset != c.Offset || e.Size != c.Size ||
			e.Coord[1] != c.Coord[1] || e.Coord[0] != c.Coord[0] {
			t.Fatalf("error %+v, want chunk %+v", e, c)
		}
		for _, part := range []string{`"/all"`, "chunk [0 21]", "fletcher32: checksum is"} {
			if !strings.Contains(err.Error(), part) {
				t.Fatalf("error %q has no %q", err, part)
			}
		}
	}
}

// Stored names the bytes that a read takes, and Warm is asked for them before.
func TestStoredAndWarm(t *testing.T) {
	file := small(t, "small-new.h5")
	for _, path := range []string{"gzip", "all", "flat", "rest", "plain"} {
		d, err := openBytes(t, file).Dataset(path)
		require.NoError(t, err)
		var mu sync.Mutex
		warmed := map[int64]int64{}
		r, err := NewMapped(file, d, Options{Warm: func(off, n int64) error {
			mu.Lock()
			defer mu.Unlock()
			warmed[off] = max(warmed[off], n)
			return nil
		}})
		require.NoError(t, err)
		defer r.Close()
		require.NoError(t, r.Records(t.Context(), make([]byte, 3*r.RecordBytes()), 1, 4))
		stored := map[int64]int64{}
		r.Stored(1, 4, func(off, n int64) { stored[off] = n })
		if !maps.Equal(stored, warmed) {
			t.Errorf("%s: stored at %v, warmed %v", path, stored, warmed)
		}
		r.Stored(2, 2, func(off, n int64) {
			if n > 0 {
				t.Errorf("%s: no records are %d bytes at %d", path, n, off)
			}
		})
		r.data.src.warm = func(int64, int64) error { return io.ErrNoProgress }
		if err := r.Gather(t.Context(), make([]byte, r.RecordBytes()), []int{int(r.Len()) - 1}); !errors.Is(err,
			io.ErrNoProgress) && path != "rest" {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

func TestSourceErrors(t *testing.T) {
	r, src := counted(t, "gzip", Options{})
	src.fail = errors.New("disk on fire")
	if err := r.Records(t.Context(), make([]byte, 30), 0, 1); !errors.Is(err, src.fail) {
		t.Errorf("error %v", err)
	}
	src.fail = io.EOF
	if err := r.Records(t.Context(), make([]byte, 30), 0, 1); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
	src.fail = nil // nothing of the failures is kept
	require.NoError(t, r.Records(t.Context(), make([]byte, 30), 0, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Records(ctx, make([]byte, 30), 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestWrongArguments(t *testing.T) {
	r := mapped(t, small(t, "small-new.h5"), "gzip", Options{})
	for _, x := range [][2]int64{{-1, 1}, {0, 21}, {3, 2}} {
		if err := r.Records(t.Context(), nil, x[0], x[1]); err == nil {
			t.Errorf("records %v: no error", x)
		}
	}
	for _, i := range []int{-1, 20} {
		if err := r.Gather(t.Context(), make([]byte, 30), []int{i}); err == nil {
			t.Errorf("record %d: no error", i)
		}
	}
	for _, f := range []func(){
		func() { _ = r.Records(t.Context(), make([]byte, 29), 0, 1) },
		func() { _ = r.Gather(t.Context(), make([]byte, 31), []int{0}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("memory of the wrong length: no panic")
				}
			}()
			f()
		}()
	}
}

func TestNothingAllocated(t *testing.T) {
	file := small(t, "small-new.h5")
	for _, path := range []string{"gzip", "all", "lzf", "plain", "sum", "flat", "rest"} {
		r := mapped(t, file, path, Options{})
		size := r.RecordBytes()
		one, batch := make([]byte, size), make([]byte, 6*size)
		indices := []int{1, 4, 3, 1, 0, 2}
		ctx := context.Background()
		step := func() {
			require.NoError(t, errors.Join(r.Records(ctx, one, 2, 3), r.Gather(ctx, batch, indices),
				r.Records(ctx, batch[:5*size], 0, 5)))
		}
		for range 20 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n >= 1 {
			t.Errorf("%s: %v allocations a round", path, n)
		}
	}
}

func TestRefusals(t *testing.T) {
	file := makeFile(t, `
 f.create_dataset("vlen", shape=(3,), dtype=h5py.vlen_dtype("i4"))
 f.create_dataset("text", data=["a", "b"], dtype=h5py.string_dtype())
 f.create_dataset("ref", shape=(1,), dtype=h5py.ref_dtype)
 f.create_dataset("null", data=h5py.Empty("f4"))
 f.create_dataset("mixed", shape=(2,), dtype=[("a", "i4"), ("b", h5py.string_dtype())])
 f.create_dataset("offset", data=np.arange(100), chunks=(10,), scaleoffset=4, compression="lzf")
 f.create_dataset("outside", shape=(2,), dtype="i4", external=[("raw.bin", 0, 8)])
 l = h5py.VirtualLayout(shape=(4,), dtype="i4")
 l[0:4] = h5py.VirtualSource("other.h5", "x", shape=(4,))
 f.create_virtual_dataset("virtual", l)
 f.create_dataset("x" * 3, data=np.arange(3))
`)
	words := map[string]string{
		"/vlen": "vlen of int32", "/text": "string utf-8", "/ref": "object reference", "/null": "null dataspace",
		"/mixed":  "compound",
		"/offset": "lzf after scaleoffset", "/outside": "raw.bin", "/virtual": "virtual",
	}
	for d := range openBytes(t, file).All() {
		_, err := NewMapped(file, d, Options{})
		if d.Path == "/xxx" {
			require.NoError(t, err)
			continue
		}
		if !errors.Is(err, meta.ErrUnsupported) || !strings.Contains(err.Error(), words[d.Path]) {
			t.Errorf("%s: error %v, want one about %q", d.Path, err, words[d.Path])
		}
		a, err := Advise(d, 32)
		if !errors.Is(err, meta.ErrUnsupported) {
			t.Errorf("%s: advice for what cannot be read, error %v", d.Path, err)
		}
		if want := map[string]int64{"/offset": 10}[d.Path]; a.Chunks != want || a.Nanos != 0 || want > 0 && a.Stored == 0 {
			t.Errorf("%s: storage %+v, want %d chunks", d.Path, a, want)
		}
		line := map[string]string{
			"/outside": "penstock preprocess OLD.h5 NEW.h5", "/virtual": "penstock preprocess OLD.h5 NEW.h5",
		}[d.Path]
		if got := d.Remedy("OLD.h5", "NEW.h5"); got != line || line != "" &&
			!strings.HasSuffix(err.Error(), "make a file that can be read: "+line) {
			t.Errorf("%s: remedy %q, want %q; error %v", d.Path, got, line, err)
		}
	}
}

// Every filter is undone, or there is a command that undoes it.
func TestRemedies(t *testing.T) {
	scaled := []uint32{2, 0, 16, 0, 4, 0, 0, 0, 0, 0} // parameters of scaleoffset
	for id := range uint16(1 << 15) {
		for _, f := range [][]meta.Filter{{{ID: id, Params: scaled}},
			{{ID: id, Params: scaled}, {ID: meta.FilterFletcher32}}} {
			line := (&meta.Dataset{Filters: f}).Remedy("a", "b")
			if _, err := newPipeline(f, 4, 64); !errors.Is(err, meta.ErrCorrupt) && (err != nil) != (line != "") {
				t.Fatalf("filters %v: error %v, remedy %q", f, err, line)
			}
		}
	}
	if line := RepackCommand(&meta.Dataset{Filters: []meta.Filter{{ID: 32013}}}, "a b.h5",
		"c.h5"); !strings.HasSuffix(line, "h5repack -f NONE 'a b.h5' c.h5") || !strings.HasPrefix(line, "HDF5_PLUGIN_PATH=") {
		t.Error(line)
	}
}
