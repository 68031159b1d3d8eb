package inspect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// small is a file of package meta's tests, made by h5py: see generate.py there.
func small(name string) string {
	return filepath.Join("..", "..", "..", "internal", "hdf5", "meta", "testdata", "small-"+name+".h5")
}

// schemaOf returns the fields of a labelled set of images of 3 channels and 8 x 8 pixels.
func schemaOf(dtype tensor.DType, layout string, classes ...string) store.Schema {
	shape := []int{3, 8, 8}
	if layout == store.HWC {
		shape = []int{8, 8, 3}
	}
	images := store.NewField("images", dtype, shape...)
	images.Layout = layout
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = classes
	return store.Schema{Fields: []store.Field{images, labels}}
}

// build writes n records; fill sets the values of record i, which are zero before.
func build(t testing.TB, schema store.Schema, n int, info store.Info, fill func(i int, values [][]byte)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ds")
	w, err := store.CreateFlat(path, schema, store.FlatOptions{ShardBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range n {
		r := store.NewRecord(schema)
		fill(i, r.Values)
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(info); err != nil {
		t.Fatal(err)
	}
	return path
}

// animals is a dataset of 600 records in 2 shards: pixel k of record i is i+k, its label i%3.
func animals(t testing.TB) string {
	return build(t, schemaOf(tensor.Uint8, store.CHW, "cat", "dog", "owl"), 600, store.Info{}, fillAnimal)
}

func fillAnimal(i int, values [][]byte) {
	for k := range values[0] {
		values[0][k] = byte(i + k)
	}
	values[1][0] = byte(i % 3)
}

// rewrite changes a file that may be read-only.
func rewrite(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(bytes.Clone(data)), 0o666); err != nil {
		t.Fatal(err)
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] ^= 0x10
		return b
	}
}

// keys returns the names at the top of a value's JSON.
func keys(t testing.TB, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]any)
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
