package chunk

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// Files as netCDF-4, PyTables and MATLAB 7.3 write them: every dataset has the bytes that h5py
// reads, or is refused because they are elsewhere or need an unknown filter; and the tree is
// h5dump's.
func TestFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	t.Log(strings.TrimSpace(string(h5test.Run(t, "testdata/others.py", dir))))
	var answers map[string]map[string]conformAnswer
	require.NoError(t, json.Unmarshal(readFile(t, filepath.Join(dir, "answers.json")), &answers))
	if len(answers) == 0 {
		t.Skip("none of netCDF4, tables, hdf5storage and h5netcdf is installed: pip install them for $PYTHON")
	}
	pool := NewPool(2)
	defer pool.Close()
	compared := 0
	for name, want := range answers {
		compared += len(want)
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
	if compared == 0 {
		t.Error("no dataset was compared with h5py's")
	}
	compareTrees(t, dir, answers, 2)
}

// Files with the filters of hdf5plugin, and with szip and nbit of HDF5 itself: every dataset has the bytes that h5py
// reads.
func TestFilesOfPlugins(t *testing.T) {
	pythontest.Need(t, "import h5py, hdf5plugin")
	dir := t.TempDir()
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	t.Log(strings.TrimSpace(string(pythontest.Run(t, "import h5py, hdf5plugin", "testdata/plugins.py", dir))))
	var answers map[string]map[string]conformAnswer
	require.NoError(t, json.Unmarshal(readFile(t, filepath.Join(dir, "answers.json")), &answers))
	if len(answers) < 140 {
		t.Errorf("%d files, want at least 140", len(answers))
	}
	pool := NewPool(2)
	defer pool.Close()
	for name, want := range answers {
		file := readFile(t, filepath.Join(dir, name))
		for path, a := range want {
			d, err := openBytes(t, file).Dataset(path)
			if err != nil {
				t.Fatal(name, path, err)
			}
			compareOrRefused(t, name+path, file, d, a, pool)
		}
	}
}

func compareOrRefused(t *testing.T, name string, file []byte, d *meta.Dataset, want conformAnswer, pool *Pool) {
	t.Helper()
	if !want.Refused {
		compare(t, name, file, d, want, pool)
		return
	}
	r, err := NewMapped(file, d, Options{Pool: pool})
	if err == nil {
		r.Close()
	}
	if !errors.Is(err, meta.ErrUnsupported) {
		t.Errorf("%s: error %v, want that it is not supported", name, err)
	}
}

// Files of HDF5's own tests, if PENSTOCK_HDF5_FILES names a folder with any, are read as h5py
// reads them, or refused for what they are.
func TestFilesOfHDF5(t *testing.T) {
	folder := os.Getenv("PENSTOCK_HDF5_FILES")
	if folder == "" {
		t.Skip("PENSTOCK_HDF5_FILES names no folder of HDF5 files (such as tools/testfiles of the sources of HDF5)")
	}
	answers := answersOfAll(t, folder)
	equal := 0
	for path, want := range answers {
		equal += readOrRefused(t, path, want)
	}
	t.Logf("%d files, %d datasets equal to h5py's", len(answers), equal)
	if equal == 0 {
		t.Error("no dataset was compared with h5py's")
	}
}

// answersOfAll asks h5py about all files in a folder. One that it cannot read has no answers.
func answersOfAll(t *testing.T, folder string) map[string]map[string]conformAnswer {
	t.Helper()
	answers := make(map[string]map[string]conformAnswer)
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".h5" {
			answers[path] = nil
		}
		return err
	})
	if err != nil || len(answers) == 0 {
		t.Fatalf("%d files in %s, error %v", len(answers), folder, err)
	}
	cmd := exec.Command(h5test.Python(t), "-B", "testdata/answers.py")
	cmd.Stdin = strings.NewReader(strings.Join(slices.Sorted(maps.Keys(answers)), "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("h5py did not survive these files: %v", err)
	}
	require.NoError(t, json.Unmarshal(out, &answers))
	return answers
}

// readOrRefused reads what a file has and returns how many datasets of numbers h5py reads
// alike; other types it converts.
func readOrRefused(t *testing.T, path string, want map[string]conformAnswer) (equal int) {
	t.Helper()
	file := readFile(t, path)
	f, err := meta.Open(bytes.NewReader(file), int64(len(file)))
	if errors.Is(err, meta.ErrNotHDF5) {
		return 0
	}
	if err != nil {
		checkKind(t, err)
		return 0
	}
	for d := range f.All() {
		got, err := readAll(t, file, d)
		a, reported := want[d.Path]
		switch {
		case !reported || a.Refused || d.Type == nil || d.Type.DType() == tensor.Invalid:
		case err != nil && !slices.Contains(a.Shape, 0):
			t.Logf("%s%s is not read, but by h5py: %v", path, d.Path, err)
		case err == nil && len(got) > 0 && sum(got) != a.Sum:
			t.Errorf("%s%s: type %v: other bytes than h5py's", path, d.Path, d.Type)
		case err == nil:
			equal++
		}
	}
	return equal
}

// readAll returns the records of a dataset, none of one that is large.
func readAll(t *testing.T, file []byte, d *meta.Dataset) ([]byte, error) {
	t.Helper()
	r, err := NewMapped(file, d, Options{})
	if err != nil {
		checkKind(t, err)
		return nil, err
	}
	defer r.Close()
	if r.Len() > mostRead/int64(max(1, r.RecordBytes())) {
		return nil, nil
	}
	dst := make([]byte, r.Len()*int64(r.RecordBytes()))
	if err = r.Records(t.Context(), dst, 0, r.Len()); err != nil {
		checkKind(t, err)
	}
	return dst, err
}
