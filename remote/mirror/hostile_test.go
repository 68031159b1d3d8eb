package mirror

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/hostilebucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/store/hdf5"
)

// A bucket that answers wrongly, from the first request on or only for records: a loader returns
// the dataset's records, or an error. Nothing is written outside of the cache, and memory stays in
// bounds.
func TestHostileBucket(t *testing.T) {
	flat, _ := pair(t, 300)
	data, err := os.ReadFile(buildHDF5(t, 300, 50, hdf5.Options{}))
	require.NoError(t, err)
	flat.Put("ds.h5", data)
	for name, o := range zarrOptions {
		_, dir := buildZarr(t, 300, o)
		putFiles(t, flat, dir, name+".zarr")
		epoch(t, open(t, flat, name+".zarr", Options{}), loader.Options{BatchSize: 32}, 0) // which makes a decoder outside of synctest
	}
	for _, key := range []string{"ds", "ds.h5", "plain.zarr", "zstd.zarr"} {
		honest := epoch(t, open(t, flat, key, Options{}), hostileLoop, 0)
		for _, spare := range []string{"", layout.ManifestName, layout.ZarrManifest, layout.ZarrNode} {
			if zarr := strings.HasSuffix(key, ".zarr"); spare != "" && zarr == (spare == layout.ManifestName) {
				continue
			}
			for _, attack := range hostilebucket.Reads {
				t.Run(fmt.Sprintf("%s/%s/%s", key, attack.Name, spare), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						testHostile(t, &hostilebucket.Bucket{Bucket: flat, Attack: attack, Spare: spare}, key, honest)
					})
				})
			}
		}
	}
}

// hostileLoop is how the datasets of a hostile bucket are read.
var hostileLoop = loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Workers: 2}

// testHostile reads a dataset of a hostile bucket. An honest bucket gives the batches want.
func testHostile(t *testing.T, b *hostilebucket.Bucket, key string, want []byte) {
	dir := t.TempDir()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := Open(t.Context(), b, key, Options{CacheDir: filepath.Join(dir, "cache")})
	if err == nil {
		var got []byte
		got, err = tryEpoch(t, d, hostileLoop)
		if err == nil && !bytes.Equal(got, want) {
			t.Error("other bytes, and no error")
		}
		require.NoError(t, d.Close())
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
		t.Errorf("%d bytes were allocated", used)
	}
	for name := range maps.Keys(foldertest.Files(t, dir)) {
		if filepath.Dir(name) == "." && name != "cache" {
			t.Errorf("%s was created outside of the cache", name)
		}
	}
	t.Log(err)
}

// tryEpoch is epoch where reads may fail.
func tryEpoch(t *testing.T, src loader.Source, opts loader.Options) ([]byte, error) {
	ld, err := loader.New(src, opts)
	if err != nil {
		return nil, err
	}
	defer ld.Close()
	var out bytes.Buffer
	for b, err := range ld.Epoch(t.Context(), 0) {
		if err != nil {
			return nil, err
		}
		for _, s := range ld.Specs() {
			if s.Ragged {
				fmt.Fprint(&out, b.Offsets(s.Name))
			}
			out.Write(b.Field(s.Name).Bytes())
		}
	}
	return out.Bytes(), nil
}
