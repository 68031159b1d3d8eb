package zarr

import (
	"bytes"
	"flag"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/testkit/require"
)

var mutations = flag.Int("mutations", 1000, "how many corrupt hierarchies TestMutations opens")

// load returns all files of a zip file.
func load(t *testing.T, z *zipped) fstest.MapFS {
	t.Helper()
	m := make(fstest.MapFS)
	for _, f := range z.z.File {
		r, err := f.Open()
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		m[f.Name] = &fstest.MapFile{Data: b, Mode: 0o444}
	}
	return m
}

// mutate changes a few bytes of a file, or of metadata a number or a word.
func mutate(rng *rand.Rand, name string, b []byte) []byte {
	b = bytes.Clone(b)
	switch rng.IntN(4) {
	case 0:
		return b[:rng.IntN(len(b)+1)]
	case 1:
		if i := bytes.IndexFunc(b[rng.IntN(len(b)+1):], func(r rune) bool { return r >= '0' && r <= '9' }); i >= 0 && isMetadata(path.Base(name)) {
			for _, word := range []string{"0", "-1", "4611686018427387904", "1e30", "null", `"x"`, "[]", "{}"}[rng.IntN(8):][:1] {
				return slices.Concat(b[:i], []byte(word), b[min(i+1+rng.IntN(3), len(b)):])
			}
		}
	}
	for range 1 + rng.IntN(4) {
		if len(b) > 0 {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
	}
	return b
}

// readSome reads the first records of all arrays.
func readSome(t *testing.T, files Files, pool *chunk.Pool) (right bool) {
	g, err := Open(files)
	if err != nil {
		return false
	}
	for _, a := range g.Arrays {
		r, err := a.Reader(chunk.Options{Pool: pool, CacheBytes: 1 << 20})
		if err != nil || r.RecordBytes() > 1<<16 {
			continue
		}
		n := min(r.Len(), 30)
		right = r.Records(t.Context(), make([]byte, int(n)*r.RecordBytes()), 0, n) == nil || right
	}
	return right
}

// Whatever is in the files: an error or values, soon, in memory that the files bound.
func TestMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pool := chunk.NewPool(1)
	defer pool.Close()
	all := hierarchies(t, "testdata")
	names := slices.Sorted(maps.Keys(all))
	var loaded []fstest.MapFS
	for _, name := range names {
		loaded = append(loaded, load(t, all[name].(*zipped)))
	}
	read := 0
	var before, after runtime.MemStats
	for i := range *mutations {
		m := loaded[i%len(names)]
		keys := slices.Sorted(maps.Keys(m))
		if i%2 == 0 { // every other time the metadata
			keys = slices.DeleteFunc(keys, func(k string) bool { return !isMetadata(path.Base(k)) || strings.Contains(k, "/") })
		}
		key := keys[rng.IntN(len(keys))]
		good := m[key]
		m[key] = &fstest.MapFile{Data: mutate(rng, key, good.Data), Mode: 0o444}
		runtime.ReadMemStats(&before)
		if readSome(t, m, pool) {
			read++
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("mutation %d, %s of %s: %d bytes of memory: %q", i, key, names[i%len(names)], n, m[key].Data[:min(2000, len(m[key].Data))])
		}
		m[key] = good
	}
	if read == 0 || read == *mutations {
		t.Errorf("%d of %d were read: these are no mutations", read, *mutations)
	}
}
