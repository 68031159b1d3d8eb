package mmapds_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// unpackZarr returns a folder of Zarr that internal/zarr has a zip file of.
func unpackZarr(t *testing.T, name string) string {
	t.Helper()
	z, err := zip.OpenReader("../internal/zarr/testdata/" + name + ".zip")
	require.NoError(t, err)
	defer z.Close()
	dir := filepath.Join(t.TempDir(), name+".zarr")
	require.NoError(t, os.CopyFS(dir, z))
	return dir
}

// Arrays of Zarr are opened as they are: chunks of whole records are mapped, others decoded.
func TestZarr(t *testing.T) {
	for name, size := range map[string]int{
		"zarr-3-uint8-plain": 1, "zarr-3-bool-shards,start": 1, "zarr-3-float32-shards": 4, "zarr-3-int32-blosc": 4, "zarr-2-float32-order,F": 4, "zarr-3-int16-transpose": 2,
	} {
		ds, err := mmapds.Open(unpackZarr(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		defer ds.Close()
		mapped := size == 1
		if packed := layout.Of(ds.Files()).Columns[0].Packed; packed == mapped || ds.Len() != 23 {
			t.Errorf("%s: %d records, packed %v", name, ds.Len(), packed)
		}
		all, err := ds.Slice(name, 0, 23)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		order := []int{22, 3, 3, 4, 0, 19}
		got := make([]byte, len(order)*30*size)
		if err := ds.Gather(t.Context(), name, order, got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, k := range order {
			if n := 30 * size; !bytes.Equal(got[i*n:(i+1)*n], all.Bytes()[k*n:(k+1)*n]) {
				t.Errorf("%s: Gather and Slice differ in record %d", name, k)
			}
		}
		if name == "zarr-3-uint8-plain" && kernel.CRC32C(0, all.Bytes()) != kernel.CRC32C(0, values()) {
			t.Errorf("%s: wrong values", name)
		}
	}
}

func values() (b []byte) {
	for i := range 690 {
		b = append(b, byte(i*37%120))
	}
	return b
}

// Corrupt metadata and chunks that end early are errors that say so.
func TestZarrCorrupt(t *testing.T) {
	dir := unpackZarr(t, "zarr-3-float32-shards")
	var shards []string
	err := filepath.WalkDir(filepath.Join(dir, "c"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			shards = append(shards, path)
		}
		return err
	})
	if err != nil || len(shards) == 0 {
		t.Fatal(err)
	}
	require.NoError(t, os.Truncate(shards[0], 10))
	ds, err := mmapds.Open(dir)
	require.NoError(t, err)
	defer ds.Close()
	if _, err := ds.Slice("zarr-3-float32-shards", 0, 23); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a shard that was truncated: %v", err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zarr.json"), []byte("{"), 0o666))
	if _, err := mmapds.Open(dir); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("no metadata: %v", err)
	}
}
