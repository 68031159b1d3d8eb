package zarr_test

import (
	"bytes"
	"flag"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// flips is how many bits are flipped in each dataset.
const flips = 170

// Every bit that is flipped, in any file, is found.
func TestFlips(t *testing.T) {
	for _, name := range []string{"plain", "small shards", "zstd shards"} {
		path := filepath.Join(crash.MemoryDir(t), "x.zarr")
		write(t, path, 0, 600, options()[name])
		files := foldertest.Files(t, path)
		names := slices.Sorted(maps.Keys(files))
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range flips {
			name := names[i%len(names)]
			at := rng.IntN(len(files[name]))
			if i%3 == 0 { // of a shard, the index
				at %= 4096
			}
			data := []byte(files[name])
			data[at] ^= 1 << rng.IntN(8)
			replace(t, filepath.Join(path, name), data)
			if whole(t, path) {
				t.Errorf("%s: a bit of byte %d of %d is flipped, and nothing says so", name, at, len(data))
			}
			replace(t, filepath.Join(path, name), []byte(files[name]))
		}
		if !whole(t, path) {
			t.Error("without a flip, it is not whole")
		}
	}
}

// whole reports whether nothing is found to be corrupt.
func whole(t testing.TB, path string) bool {
	d, err := store.Open(path, store.OpenOptions{})
	if err != nil {
		return false
	}
	v, err := verify.Dataset(t.Context(), d, verify.Options{})
	if err != nil || v.Corruptions > 0 {
		return false
	}
	_, unknown, err := layout.Of(d).CheckZarr(d.Path, d.Manifest.Metadata)
	return err == nil && len(unknown) == 0
}

// replace writes a file in place of one that is read-only.
func replace(t testing.TB, path string, data []byte) {
	t.Helper()
	os.Remove(path)
	require.NoError(t, os.WriteFile(path, data, 0o444))
}

var mutations = flag.Int("mutations", 400, "how many corrupt datasets TestMutations opens")

// Whatever is in the files: an error or values, soon, in memory that the files bound. Every other dataset has lost its manifest,
// so that nothing vouches for its metadata.
func TestMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	type trial struct {
		path  string
		files map[string]string
		names []string
	}
	var trials []trial
	for _, name := range []string{"plain", "zstd"} {
		for _, foreign := range []bool{false, true} {
			path := filepath.Join(crash.MemoryDir(t), "x.zarr")
			write(t, path, 0, 30, options()[name])
			if foreign {
				os.Remove(filepath.Join(path, filepath.FromSlash(layout.ZarrManifest)))
			}
			files := foldertest.Files(t, path)
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(n string) bool { return foreign && filepath.Dir(n) == "penstock" })
			trials = append(trials, trial{path, files, names})
		}
	}
	read := 0
	var before, after runtime.MemStats
	for i := range *mutations {
		c := trials[i%len(trials)]
		name := c.names[rng.IntN(len(c.names))]
		replace(t, filepath.Join(c.path, name), mutate(rng, []byte(c.files[name])))
		runtime.ReadMemStats(&before)
		if readAll(t, c.path) {
			read++
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("mutation %d of %s: %d bytes of memory", i, name, n)
		}
		replace(t, filepath.Join(c.path, name), []byte(c.files[name]))
	}
	if read == 0 || read == *mutations {
		t.Errorf("%d of %d were read: these are no mutations", read, *mutations)
	}
}

// mutate cuts data, changes a number in it, or flips bits of its first bytes, where a shard has its index.
func mutate(rng *rand.Rand, data []byte) []byte {
	switch rng.IntN(4) {
	case 0:
		return data[:rng.IntN(len(data)+1)]
	case 1:
		from := rng.IntN(len(data))
		if i := bytes.IndexAny(data[from:], "0123456789"); i >= 0 {
			word := []string{"0", "-1", "4611686018427387904", "1e30", "null", `"x"`, "[]"}[rng.IntN(7)]
			return slices.Concat(data[:from+i], []byte(word), data[from+i+1:])
		}
	}
	for range 1 + rng.IntN(4) {
		data[rng.IntN(min(len(data), 6000))] ^= 1 << rng.IntN(8)
	}
	return data
}

// readAll reads all values of two fields, and reports whether that succeeds.
func readAll(t *testing.T, path string) bool {
	ds, err := mmapds.Open(path, mmapds.WithFields("images", "labels"))
	if err != nil {
		return false
	}
	defer ds.Close()
	for _, f := range ds.Schema().Fields {
		order := make([]int, min(ds.Len(), 50))
		for i := range order {
			order[i] = i
		}
		if err := ds.Gather(t.Context(), f.Name, order, make([]byte, len(order)*f.RecordBytes())); err != nil {
			return false
		}
	}
	return true
}

// library prints the checksums of arrays as a library reads them; a warning is an error.
const library = `
import sys, warnings, zlib
warnings.simplefilter("error")
import dask.array, numpy as np, tensorstore, xarray, zarr
path, names = sys.argv[1], sys.argv[2:]
group, data = zarr.open(path, mode="r"), xarray.open_zarr(path)
for name in names:
    store = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path + "/" + name}}
    read = [group[name][:], tensorstore.open(store).result().read().result(), dask.array.from_zarr(path, component=name).compute()]
    if "/" not in name:
        read.append(data[name].values)
        assert data[name].dims[0] == "record"
    print(*[zlib.crc32(np.ascontiguousarray(a).tobytes()) for a in read])
    half = len(read[0]) // 2
    assert half == 0 or (group[name][half] == read[0][half]).all()
`

// zarr-python, tensorstore, dask and xarray read the values that were written.
func TestLibraries(t *testing.T) {
	for _, name := range []string{"plain", "small shards", "zstd"} {
		path := filepath.Join(crash.MemoryDir(t), "x.zarr")
		write(t, path, 0, 600, options()[name])
		want := values(t, path)
		names := []string{"images", "labels", "deep/large", "brain", "half", "mask", "captions/values", "b/ö x/values", "none/values"}
		out := pythontest.Run(t, "import dask.array, numpy, tensorstore, xarray, zarr", append([]string{"-c", library, path}, names...)...)
		for i, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
			field := strings.TrimSuffix(names[i], "/values")
			for _, got := range bytes.Fields(line) {
				if want := strconv.FormatUint(uint64(crc32.ChecksumIEEE(want[field])), 10); string(got) != want {
					t.Errorf("%s: %s: %s, want %s", name, names[i], got, want)
				}
			}
		}
		if n := bytes.Count(out, []byte("\n")); n != len(names) {
			t.Errorf("%d arrays were read", n)
		}
	}
}
