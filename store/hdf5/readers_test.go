package hdf5

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// PyTables, netCDF4, h5netcdf, hdf5storage (MATLAB) and h5py read the values of all kinds of files, which are the same whatever wrote
// them: see TestContainersAgree.
func TestReaders(t *testing.T) {
	folder := t.TempDir()
	want := make(map[string]map[string]string)
	for _, s := range samples() {
		path, _ := s.build(t, containers[0])
		want[s.name+".h5"] = digests(t, path)
		require.NoError(t, os.Rename(path, filepath.Join(folder, s.name+".h5")))
	}
	for _, library := range []string{"h5py", "tables", "netCDF4", "h5netcdf", "hdf5storage"} {
		t.Run(library, func(t *testing.T) {
			var got map[string]map[string]string
			out := pythontest.Run(t, "import h5py, numpy, "+library, filepath.Join("testdata", "readers.py"), library, folder)
			require.NoError(t, json.Unmarshal(out, &got))
			for file, arrays := range want {
				for path, digest := range arrays {
					if d, ok := got[file][path]; d != digest && (ok || library != "netCDF4") { // which leaves out half precision
						t.Errorf("%s: %s: other values, or none", file, path)
					}
				}
				if n := len(got[file]); n <= len(arrays) && library != "netCDF4" || n < 3 {
					t.Errorf("%s: %d arrays were read, with checksums and manifest, of more than %d", file, n, len(arrays))
				}
			}
		})
	}
}

// digests returns the SHA-256 of the values of all columns, by path.
func digests(t *testing.T, path string) map[string]string {
	t.Helper()
	d, err := store.OpenHDF5(path, store.OpenOptions{Packed: true})
	require.NoError(t, err)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	pool := chunk.NewPool(1)
	defer pool.Close()
	all := make(map[string]string)
	for _, c := range layout.Of(d).Columns {
		h := sha256.New()
		for _, e := range c.Extents {
			rows := make([]byte, e.Count*int64(c.Spec.RecordBytes()))
			if !c.Packed {
				_, err = f.ReadAt(rows, e.Offset)
			} else if r, openErr := layout.Of(d).OpenColumn(&c, f, nil, chunk.Options{Pool: pool}); openErr != nil {
				err = openErr
			} else {
				err = r.Records(t.Context(), rows, e.Row, e.Row+e.Count)
			}
			require.NoError(t, err)
			h.Write(rows)
		}
		all[strings.TrimPrefix(c.Path(), "/")] = fmt.Sprintf("%x", h.Sum(nil))
	}
	return all
}
