package view_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/tensor"
)

var dtypes = []tensor.DType{
	tensor.Uint8, tensor.Int8, tensor.Uint16, tensor.Int16, tensor.Uint32, tensor.Int32, tensor.Uint64, tensor.Int64,
	tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Bool,
}

// everything is a schema with a field of every type, and all that a field can be.
func everything() store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, 8, 8)
	images.Layout = tensor.CHW
	images.Normalization = &store.Normalization{Scale: 255, Mean: []float64{.5, .25, .125}, Std: []float64{1, 2, 3}}
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"cat", "grüne Eule", ""}
	many := store.NewField("many", tensor.Int64)
	for i := range 7000 {
		many.Classes = append(many.Classes, fmt.Sprintf("class %d", i))
	}
	text := store.NewRagged("text", tensor.Uint8)
	text.Content = tensor.Text
	fields := []store.Field{images, labels, many, text, store.NewRagged("boxes", tensor.Float32, 4)}
	for _, d := range dtypes {
		fields = append(fields, store.NewField("t-"+d.String(), d, 3))
	}
	return store.Schema{Fields: fields}
}

// build writes n records, in shards as small as they can be.
func build(t testing.TB, schema store.Schema, n int, opts flat.Options) *store.Dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds")
	w, err := flat.Create(path, schema, opts)
	require.NoError(t, err)
	defer w.Close()
	for i := range n {
		require.NoError(t, w.Append(record(schema, i)))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	d, err := store.OpenFlat(path)
	require.NoError(t, err)
	return d
}

func record(schema store.Schema, i int) *store.Record {
	r := store.NewRecord(schema)
	for k, f := range schema.Fields {
		if f.Ragged {
			r.Values[k] = make([]byte, i%5*f.RecordBytes())
		}
		for j := range r.Values[k] {
			r.Values[k][j] = byte(i + j + k)
			if f.DType == tensor.Bool {
				r.Values[k][j] &= 1
			}
		}
		if len(f.Classes) > 0 {
			clear(r.Values[k])
			r.Values[k][0] = byte(i % 3)
		}
	}
	return r
}

// write puts the view where it belongs.
func write(t testing.TB, d *store.Dataset) string {
	t.Helper()
	data, err := view.Encode(d, d.Path)
	require.NoError(t, err)
	again, err := view.Encode(d, d.Path)
	if err != nil || !bytes.Equal(data, again) {
		t.Fatalf("other bytes the second time, error %v", err)
	}
	path := filepath.Join(d.Path, view.Name)
	require.NoError(t, os.WriteFile(path, data, 0o666))
	return path
}

// penstock's reader finds the datasets of the flat dataset, in its files.
func TestEncodeForOurReader(t *testing.T) {
	d := build(t, everything(), 9000, flat.Options{ShardBytes: 1})
	data, err := os.ReadFile(write(t, d))
	require.NoError(t, err)
	f, err := meta.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	for i := range layout.Of(d).Columns {
		c := &layout.Of(d).Columns[i]
		x, err := f.Dataset(c.Path())
		require.NoError(t, err)
		if c.Part == layout.Offsets {
			if len(c.Extents) < 2 || x.Records() != d.Records+1 || len(x.External) > 0 {
				t.Errorf("%s: %d of %d extents, %d records", c.Path(), len(x.External), len(c.Extents), x.Records())
			}
			continue
		}
		if x.Records() != c.Rows || len(x.External) != len(c.Extents) {
			t.Errorf("%s: %d rows in %d files, want %d in %d", c.Path(), x.Records(), len(x.External), c.Rows, len(c.Extents))
			continue
		}
		for k, e := range c.Extents {
			want := meta.ExternalFile{Name: filepath.Base(e.Path), Offset: e.Offset, Size: e.Count * int64(c.Spec.RecordBytes())}
			if x.External[k] != want {
				t.Errorf("%s: %+v, want %+v", c.Path(), x.External[k], want)
			}
		}
	}
}

// compare reads every dataset of a view by h5py, and compares it with the .npy files and with
// what the attributes shall be.
const compare = `
import glob, os, sys
os.environ["HDF5_EXTFILE_PREFIX"] = "${ORIGIN}"
import h5py, numpy as np
folder, bf16 = sys.argv[1], "t-bfloat16"
def shards(name):
    return [np.load(p) for p in sorted(glob.glob(folder + "/" + name + "-[0-9]*[0-9].npy"))]
n = 0
with h5py.File(folder + "/view.h5", "r") as f:
    count = f.attrs["num_samples"]
    def see(name, d):
        global n
        if not isinstance(d, h5py.Dataset) or name.startswith("penstock/"):
            return
        got, parts = d[()], shards(name.replace("/", "."))
        if name.endswith("/offsets"):
            want = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p) for p in parts]))])
        else:
            want = np.concatenate(parts)
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes(), (name, got.dtype, want.dtype, got.shape, want.shape)
        if len(want) > 900:
            assert (d[700:903] == want[700:903]).all() or got.dtype.kind == "f", name
        n += 1
    f.visititems(see)
    assert f["images"].attrs["layout"] == b"NCHW" and list(f["images"].attrs["mean"]) == [.5, .25, .125] and f["images"].attrs["scale"] == 255
    assert f["images"].attrs["normalization_applied"] == False
    names = [x.decode() for x in f["labels"].attrs["class_names"]]
    assert names == ["cat", "grüne Eule", ""], names
    long = f["penstock/class_names/many"]
    assert len(long) == 7000 and long[6999] == b"class 6999", long[6999]
    assert f["text/values"].attrs["content"] == b"utf-8" and f[bf16].attrs["dtype"] == b"bfloat16"
    assert len(f["images"].external) == len(shards("images")) and count == len(f["labels"])
print(n)
`

func TestH5PyReadsTheSame(t *testing.T) {
	for _, python := range h5test.All(t) {
		for name, opts := range map[string]flat.Options{"one shard": {}, "shards": {ShardBytes: 1}} {
			d := build(t, everything(), 9000, opts)
			write(t, d)
			cmd := exec.Command(python, "-c", compare, d.Path)
			cmd.Dir = t.TempDir() // not that of the files
			var diag bytes.Buffer
			cmd.Stderr = &diag
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v: %s", name, err, diag.Bytes())
			}
			if got, want := strings.TrimSpace(string(out)), fmt.Sprint(len(layout.Of(d).Columns)); got != want {
				t.Errorf("%s: %s datasets compared, want %s", name, got, want)
			}
		}
	}
}

func TestToolsOfHDF5(t *testing.T) {
	d := build(t, everything(), 40, flat.Options{})
	path := write(t, d)
	for _, args := range [][]string{{"h5dump", path}, {"h5ls", "-rv", path}, {"h5stat", path}} {
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Logf("no %s here (apt-get install hdf5-tools)", args[0])
			continue
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "HDF5_EXTFILE_PREFIX=${ORIGIN}")
		out, err := cmd.CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("unable to")) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func TestTooManyShards(t *testing.T) {
	d := &store.Dataset{Format: "flat", Schema: store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8)}}}
	layout.Of(d).Columns = layout.Columns(d.Schema.Specs())
	layout.Of(d).Columns[0].Rows = 3000
	for range 3000 {
		layout.Of(d).Columns[0].Extents = append(layout.Of(d).Columns[0].Extents, layout.Extent{Path: "x.npy", Count: 1})
	}
	if _, err := view.Encode(d, d.Path); err == nil || !strings.Contains(err.Error(), "3000 shards") {
		t.Errorf("error %v", err)
	}
	d.Format = "hdf5"
	if _, err := view.Encode(d, d.Path); err == nil {
		t.Error("no error for an HDF5 file")
	}
}

// Files are named from where the view is, or from the root.
func TestNames(t *testing.T) {
	d := build(t, everything(), 3, flat.Options{})
	beside := filepath.Join(filepath.Dir(d.Path), "views")
	for _, c := range []struct {
		encode func() ([]byte, error)
		want   string
	}{
		{func() ([]byte, error) { return view.Encode(d, d.Path) }, "images-00000.npy"},
		{func() ([]byte, error) { return view.Encode(d, beside) }, "../ds/images-00000.npy"},
		{func() ([]byte, error) { return view.EncodeAbsolute(d) }, filepath.ToSlash(d.Path) + "/images-00000.npy"},
	} {
		data, err := c.encode()
		require.NoError(t, err)
		f, err := meta.Open(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		x, err := f.Dataset("/images")
		require.NoError(t, err)
		if got := x.External[0].Name; got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// penstock's readers recognize a view, and name the dataset to open instead.
func TestRefusal(t *testing.T) {
	d := build(t, everything(), 3, flat.Options{})
	beside := t.TempDir()
	for names, encode := range map[string]func(d *store.Dataset, folder string) ([]byte, error){
		"relative": view.Encode,
		"absolute": func(d *store.Dataset, _ string) ([]byte, error) { return view.EncodeAbsolute(d) },
	} {
		for _, folder := range []string{d.Path, beside} {
			data, err := encode(d, folder)
			require.NoError(t, err)
			path := filepath.Join(folder, view.Name)
			require.NoError(t, os.WriteFile(path, data, 0o666))
			for name, opts := range map[string]store.OpenOptions{"mapped": {}, "packed": {Packed: true}} {
				_, err := store.OpenHDF5(path, opts)
				if !errors.Is(err, store.ErrView) || !errors.Is(err, store.ErrUnsupported) || !strings.HasSuffix(err.Error(), "open the dataset instead: "+d.Path) {
					t.Errorf("%s, %s, in %s: %v", name, names, folder, err)
				}
			}
		}
	}
}

// A value that is too long for an attribute is a dataset; a field cannot have its
// name.
func TestLongAttributes(t *testing.T) {
	wide := store.NewField("wide", tensor.Uint8, 8000, 1, 1)
	wide.Layout = tensor.CHW
	wide.Normalization = &store.Normalization{Scale: 1, Mean: make([]float64, 8000), Std: make([]float64, 8000)}
	for i := range 8000 {
		wide.Normalization.Std[i] = float64(1 + i)
	}
	d := build(t, store.Schema{Fields: []store.Field{wide}}, 2, flat.Options{})
	data, err := view.Encode(d, d.Path)
	require.NoError(t, err)
	f, err := meta.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	std, err := f.Dataset("/penstock/std/wide")
	if err != nil || std.Records() != 8000 || std.Type.DType() != tensor.Float64 {
		t.Errorf("std is %+v, error %v", std, err)
	}
	wide.Name = "penstock"
	d = build(t, store.Schema{Fields: []store.Field{wide}}, 2, flat.Options{})
	if _, err := view.Encode(d, d.Path); err == nil || !strings.Contains(err.Error(), `field "penstock"`) {
		t.Errorf("error %v", err)
	}
}

// Corrupt offsets are an error or other offsets, and no panic.
func TestOffsetsThatAreNone(t *testing.T) {
	d := build(t, everything(), 9000, flat.Options{ShardBytes: 1})
	c := layout.Of(d).Column(3, layout.Offsets)
	path := c.Extents[1].Path
	require.NoError(t, errors.Join(os.Chmod(path, 0o666), os.Truncate(path, c.Extents[1].Offset+binary.MaxVarintLen16)))
	if _, err := view.Encode(d, d.Path); err == nil || !strings.Contains(err.Error(), `field "text"`) {
		t.Errorf("error %v", err)
	}
}
