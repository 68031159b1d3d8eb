package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// keys returns the names at the top of a value's JSON.
func keys(t testing.TB, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	m := make(map[string]any)
	require.NoError(t, json.Unmarshal(data, &m))
	return m
}

func text(t *testing.T, s *Summary, classes int) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, s.Render(&b, classes))
	return b.String()
}

func TestDescribeFlat(t *testing.T) {
	path := datasettest.Animals(t)
	s, err := Describe(path)
	require.NoError(t, err)
	if !s.Penstock || s.Format != "flat" || s.Records != 600 || len(s.Shards) != 2 || s.Bytes != 600*(192+8) {
		t.Errorf("%+v", s)
	}
	if onDisk := diskBytes(t, path); s.DiskBytes != onDisk {
		t.Errorf("disk_bytes %d, the files have %d", s.DiskBytes, onDisk)
	}
	labels := s.Fields[1]
	if len(labels.Classes) != 3 || labels.Classes[2].Name != "owl" || *labels.Classes[2].Records != 200 {
		t.Errorf("classes %+v", labels.Classes)
	}
	for _, key := range []string{"path", "format", "penstock", "format_version", "id", "records", "bytes", "disk_bytes", "fields", "shards"} {
		if _, ok := keys(t, s)[key]; !ok {
			t.Errorf("JSON has no %q", key)
		}
	}
}

func diskBytes(t *testing.T, path string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		n += info.Size()
	}
	return n
}

func TestSummaryListsTheFirstClasses(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("class%03d", i))
	}
	path := datasettest.Build(t, datasettest.SchemaOf(tensor.Uint8, tensor.CHW, names...), 4, store.Info{}, func(i int, v [][]byte) { v[1][0] = byte(i) })
	s, err := Describe(path)
	require.NoError(t, err)
	got := text(t, s, 20)
	for _, want := range []string{"Classes of labels: 1,000, 0 to 1 records each\n", "class019", "  ... and 980 more\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "class020") {
		t.Error("the 21st class is printed, too")
	}
	if got := text(t, s, 0); !strings.Contains(got, "class999") || strings.Contains(got, "more") {
		t.Error("0 does not list all classes")
	}
}

func TestSummaryTellsNormalization(t *testing.T) {
	for applied, want := range map[bool]string{
		true: "Normalization of images, applied: the stored values went through it", false: "Normalization of images, recorded, to be applied by the reader",
	} {
		schema := datasettest.SchemaOf(tensor.Float32, tensor.CHW)
		schema.Fields[0].Normalization = &store.Normalization{Applied: applied, Scale: 255, Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}}
		s, err := Describe(datasettest.Build(t, schema, 1, store.Info{}, func(int, [][]byte) {}))
		require.NoError(t, err)
		if got := text(t, s, 0); !strings.Contains(got, want) || !strings.Contains(got, "mean  0.4850  0.4560  0.4060\n") {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestSummaryTellsNonFiniteValues(t *testing.T) {
	path := datasettest.Build(t, datasettest.SchemaOf(tensor.Float32, tensor.CHW), 2, store.Info{}, func(_ int, v [][]byte) {
		copy(v[0], "\x00\x00\xc0\x7f") // NaN
	})
	s, err := Describe(path)
	require.NoError(t, err)
	if got := text(t, s, 0); !strings.Contains(got, "not finite") {
		t.Errorf("NaNs are not reported:\n%s", got)
	}
}

func TestSummaryTellsWhatWasSkipped(t *testing.T) {
	info := store.Info{}
	for i := range 7 {
		info.Skipped = append(info.Skipped, store.Skipped{Sample: fmt.Sprintf("cat/%d.jpg", i), Reason: "corrupt"})
	}
	s, err := Describe(datasettest.Build(t, datasettest.SchemaOf(tensor.Uint8, tensor.CHW), 1, info, func(int, [][]byte) {}))
	require.NoError(t, err)
	got := text(t, s, 0)
	for _, want := range []string{"Skipped: 7 samples\n", "cat/4.jpg: corrupt\n", "... and 2 more"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestTreeShowsEveryKind(t *testing.T) {
	s, err := Describe(datasettest.SmallHDF5("new-basic"))
	require.NoError(t, err)
	got := text(t, s, 0)
	for _, want := range []string{
		"u1       uint8 (4, 3)", "@mean  float32 (2,) ", "  [0.5 0.25]\n", `  "abc"`, "@name  string[3] ascii ", "leads back to a group around it",
		"its bytes must be swapped", "soft link to /g/u1", "external link to o.h5:/x", "compound{a: int32", "type float32",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestDescribeErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o666))
		return path
	}
	data, err := os.ReadFile(datasettest.SmallHDF5("new-basic"))
	require.NoError(t, err)
	ds := datasettest.Animals(t)
	for path, want := range map[string]string{
		filepath.Join(dir, "nowhere"): "no such file or folder",
		dir:                           "not a dataset (a folder or an HDF5 file)", // its files are called as HDF5, and are not
		write("a.txt", "hello"):       "not a dataset (a folder or an HDF5 file)",
		write("rows.h5", "PAR1PAR1"):  "is not a Parquet file: it is too short",
		write("empty.h5", ""):         "not a dataset (a folder or an HDF5 file); it is empty",
		write("text.h5", "hello"):     "it has no HDF5 signature",
		write("zeros.h5", string(make([]byte, 600))):                    "it begins with zeros",
		write("lfs.h5", "version https://git-lfs.github.com/spec/v1\n"): "it is a pointer of Git LFS; fetch the file itself: git lfs pull",
		t.TempDir(): "not a dataset (a folder or an HDF5 file); it is empty",
		write("cut.h5", string(data[:len(data)/2])): "corrupt or truncated",
		filepath.Join(ds, "images-00000.npy"):       "is a file of the dataset",
	} {
		_, err := Describe(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) > 2 {
			t.Errorf("%s: got %v, want ... %s", filepath.Base(path), err, want)
		}
	}
	if _, err := Describe(write("cut.h5", string(data[:len(data)/2]))); !errors.Is(err, meta.ErrCorrupt) {
		t.Errorf("a file cut short: %v", err)
	}
}
