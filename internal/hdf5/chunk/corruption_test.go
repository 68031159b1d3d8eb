package chunk

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/testkit/require"
)

// mutations is how many corrupt files TestMutated reads:
//
//	go test ./internal/hdf5/chunk -run TestMutated -mutations 100000
var mutations = flag.Int("mutations", 1000, "corrupt files that TestMutated reads")

// seeds are the committed files that the tests corrupt.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	var files [][]byte
	for _, pattern := range []string{"testdata/small-*.h5", "../meta/testdata/small-*.h5"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 2 {
			t.Fatalf("%d files %s, error %v", len(names), pattern, err)
		}
		for _, name := range names {
			files = append(files, readFile(t, name))
		}
	}
	return files
}

// mutate corrupts a copy of b in one to four places, or cuts it.
func mutate(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + rng.IntN(4) {
		i := rng.IntN(len(b))
		switch rng.IntN(6) {
		case 0:
			b[i] ^= 1 << rng.IntN(8)
		case 1:
			b[i] = byte(rng.Uint32())
		case 2: // a number that breaks careless arithmetic
			extremes := []uint64{0, 1, 1<<64 - 1, 1<<63 - 1, 1 << 63, 1<<32 - 1, 1 << 31, uint64(len(b)), uint64(i),
				rng.Uint64()}
			v := extremes[rng.IntN(len(extremes))]
			for j := range min(1<<rng.IntN(4), len(b)-i) {
				b[i+j] = byte(v >> (8 * j))
			}
		case 3: // a piece from elsewhere
			copy(b[i:min(len(b), i+1+rng.IntN(64))], b[rng.IntN(len(b)):])
		case 4:
			clear(b[i:min(len(b), i+1+rng.IntN(64))])
		case 5:
			if rng.IntN(8) == 0 {
				b = b[:i+1]
			}
		}
	}
	return b
}

// mostRead is how many bytes of a dataset the tests read.
const mostRead = 1 << 18

// exercise reads a file as far as it can. It fails on an error of no known kind and on too
// much memory; a panic fails the test anyway.
func exercise(t testing.TB, b []byte, pool *Pool) (datasets, read int) {
	t.Helper()
	f, err := meta.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return 0, 0
	}
	for d := range f.All() {
		datasets++
		if _, err := Advise(d, 32); err != nil {
			checkKind(t, err)
		}
		r, err := NewMapped(b, d, Options{Pool: pool})
		if err != nil {
			checkKind(t, err)
			continue
		}
		if readSome(t, r) {
			read++
		}
		held := len(r.data.cache.entries) * r.data.grid.size
		if limit := max(mostConstant, max(r.data.filter.most, mostInflated)*(len(b)+
			64)) * r.data.cache.most; len(r.data.cache.entries) > 0 && held > limit {
			t.Fatalf("%s: %d bytes of chunks are held for a file of %d", d.Path, held, len(b))
		}
	}
	return datasets, read
}

func checkKind(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, meta.ErrCorrupt) && !errors.Is(err, meta.ErrUnsupported) {
		t.Fatalf("error of no known kind: %v", err)
	}
}

// readSome reads the first and the last records, together and one by one.
func readSome(t testing.TB, r *Reader) bool {
	t.Helper()
	size := max(1, int64(r.RecordBytes()))
	n := min(r.Len(), mostRead/size)
	if n == 0 {
		return false
	}
	dst := make([]byte, n*int64(r.RecordBytes()))
	good := true
	check := func(err error) {
		if err != nil {
			good = false
			checkKind(t, err)
		}
	}
	check(r.Records(t.Context(), dst, 0, n))
	check(r.Records(t.Context(), dst, r.Len()-n, r.Len()))
	one := dst[:r.RecordBytes()]
	for _, i := range []int64{0, r.Len() / 2, r.Len() - 1} {
		check(r.Gather(t.Context(), one, []int{int(i)}))
	}
	return good
}

// No corrupt file may crash, hang or take memory without bound.
func TestMutated(t *testing.T) {
	pool := NewPool(2)
	defer pool.Close()
	files := seeds(t)
	rng := rand.New(rand.NewPCG(3, uint64(*mutations)))
	var slowest time.Duration
	opened, datasets, read := 0, 0, 0
	for i := range *mutations {
		bad := mutate(rng, files[i%len(files)])
		start := usage.Clock()
		n, good := exercise(t, bad, pool)
		slowest = max(slowest, usage.Clock()-start)
		datasets, read = datasets+n, read+good
		if n > 0 {
			opened++
		}
	}
	t.Logf("%d corrupt files: %d opened with %d datasets, %d of them read without an error; the slowest took %v of CPU time", *mutations, opened, datasets, read, slowest)
	if opened < *mutations/10 || read < opened || datasets == read {
		t.Error("the corruption does not get as far as the data, or always does")
	}
}

// Every cut of a good file is an error or the same data, never a fault.
func TestTruncated(t *testing.T) {
	pool := NewPool(2)
	defer pool.Close()
	for _, file := range seeds(t)[:2] {
		for n := 0; n < len(file); n += 97 {
			exercise(t, file[:n], pool)
		}
	}
}

// FuzzFile reads files that look like HDF5.
func FuzzFile(f *testing.F) {
	for _, file := range seeds(f) {
		f.Add(file)
	}
	pool := NewPool(1) // no helpers, so that the same input covers the same code
	f.Cleanup(pool.Close)
	f.Fuzz(func(t *testing.T, b []byte) { exercise(t, b, pool) })
}

// FuzzFilters undoes every filter on bytes that came from nowhere.
func FuzzFilters(f *testing.F) {
	f.Add([]byte("\x02abc\x20\x02"), uint16(6), uint8(2))
	f.Add([]byte("\x03\x00\x00\x00\x08\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xfa\xce"),
		uint16(5), uint8(4))
	f.Add([]byte("\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27"), uint16(3), uint8(0))
	lists := [][]meta.Filter{
		{{ID: meta.FilterDeflate}},
		{{ID: meta.FilterShuffle, Params: []uint32{4}}, {ID: meta.FilterDeflate}, {ID: meta.FilterFletcher32}},
		{{ID: meta.FilterLZF}},
		{{ID: meta.FilterFletcher32}, {ID: meta.FilterLZF}, {ID: meta.FilterShuffle, Params: []uint32{8}}},
		{{ID: meta.FilterBzip2}}, {{ID: meta.FilterLZ4}}, {{ID: meta.FilterZstd}}, {{ID: meta.FilterBlosc}}, {{ID: meta.FilterBlosc2}},
		{{ID: meta.FilterBitshuffle, Params: []uint32{0, 4, 2, 8, 2}}}, {{ID: meta.FilterBitshuffle, Params: []uint32{0, 4, 3}}},
		{{ID: meta.FilterSzip, Params: []uint32{141, 8, 16, 24}}}, {{ID: meta.FilterSzip, Params: []uint32{169, 4, 32, 24}}},
	}
	f.Fuzz(func(t *testing.T, stored []byte, size uint16, kind uint8) {
		scaled := meta.Filter{ID: meta.FilterScaleOffset, Params: []uint32{2, 0, uint32(size), 0, 1, 1, 0, uint32(kind & 1),
			7, 0}}
		lists := append(lists, []meta.Filter{scaled}, []meta.Filter{scaled, {ID: meta.FilterShuffle},
			{ID: meta.FilterDeflate}, {ID: meta.FilterFletcher32}})
		if size > 0 {
			lists = append(lists, []meta.Filter{{ID: meta.FilterNbit, Params: []uint32{8, 0, uint32(size), 1, 1, 0, 5, 2}},
				{ID: meta.FilterDeflate}})
		}
		p, err := newPipeline(lists[int(kind)%len(lists)], 2, int(size))
		require.NoError(t, err)
		var w worker
		if err := w.undo(&p, make([]byte, size), stored, uint32(kind)/4); err != nil {
			checkKind(t, err)
		}
	})
}
