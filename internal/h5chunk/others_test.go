package h5chunk

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/h5meta"
)

// Files as netCDF-4, PyTables and MATLAB 7.3 write them: every dataset has the bytes that h5py
// reads, or is refused because they are elsewhere or behind a filter of others; and the tree is
// h5dump's.
func TestFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	t.Log(strings.TrimSpace(runPython(t, "testdata/others.py", dir)))
	var answers map[string]map[string]conformAnswer
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, "answers.json")), &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) == 0 {
		t.Skip("none of netCDF4, tables, hdf5storage and h5netcdf is there: pip install them for $PYTHON")
	}
	pool := NewPool(2)
	defer pool.Close()
	for name, want := range answers {
		file := readFile(t, filepath.Join(dir, name))
		for path, a := range want {
			d, err := openBytes(t, file).Dataset(path)
			if err != nil {
				t.Errorf("%s%s: %v", name, path, err)
				continue
			}
			compareOrRefused(t, name+path, file, d, a, pool)
		}
	}
	compareTrees(t, dir, answers, 2)
}

func compareOrRefused(t *testing.T, name string, file []byte, d *h5meta.Dataset, want conformAnswer, pool *Pool) {
	t.Helper()
	if !want.Refused {
		compare(t, name, file, d, want, pool)
		return
	}
	r, err := NewMapped(file, d, Options{Pool: pool})
	if err == nil {
		r.Close()
	}
	if !errors.Is(err, h5meta.ErrUnsupported) {
		t.Errorf("%s: error %v, want that it is not supported", name, err)
	}
}

// Files of HDF5's own tests, if PENSTOCK_HDF5_FILES names a folder with any, are read or refused
// for what they are.
func TestFilesOfHDF5(t *testing.T) {
	folder := os.Getenv("PENSTOCK_HDF5_FILES")
	if folder == "" {
		t.Skip("PENSTOCK_HDF5_FILES names no folder of HDF5 files (such as tools/testfiles of the sources of HDF5)")
	}
	count := 0
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".h5" {
			return err
		}
		count++
		readOrRefused(t, path)
		return nil
	})
	if err != nil || count == 0 {
		t.Errorf("%d files, error %v", count, err)
	}
	t.Log(count, "files")
}

// readOrRefused reads all that a file has.
func readOrRefused(t *testing.T, path string) {
	t.Helper()
	file := readFile(t, path)
	f, err := h5meta.Open(strings.NewReader(string(file)), int64(len(file)))
	if err != nil {
		checkKind(t, err)
		return
	}
	for d := range f.All() {
		r, err := NewMapped(file, d, Options{})
		if err != nil {
			checkKind(t, err)
			continue
		}
		if n := r.Len() * int64(r.RecordBytes()); n < mostRead {
			dst := make([]byte, n)
			if err := r.Records(t.Context(), dst, 0, r.Len()); err != nil {
				checkKind(t, err)
			}
		}
		r.Close()
	}
}
