//go:build cgo

package mirror

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/tensor"
)

// buildHDF5 writes a file whose images are larger than what is taken for books.
func buildHDF5(t *testing.T, n int) string {
	t.Helper()
	schema := store.Schema{Fields: []store.Field{
		store.NewField("images", tensor.Uint8, 70, 70), store.NewField("labels", tensor.Int64), store.NewRagged("tokens", tensor.Int32),
	}}
	path := filepath.Join(t.TempDir(), "ds.h5")
	w, err := hdf5.Create(path, schema, hdf5.Options{})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range n {
		fill(r.Values[0], i)
		fill(r.Values[1], i)
		r.Values[2] = r.Values[2][:0]
		for k := range i % 50 {
			r.Values[2] = append(r.Values[2], byte(k), byte(i), 0, 0)
		}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHDF5(t *testing.T) {
	path := buildHDF5(t, 2000)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b := new(remote.Memory)
	b.Put("a/ds.h5", data)
	local, err := mmapds.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	opts := loader.Options{BatchSize: 64, Order: loader.Shuffle{}, Seed: 3, Workers: 2}
	want := epoch(t, local, opts, 0)
	cache := filepath.Join(t.TempDir(), "cache")
	d := open(t, b, "a/ds.h5", Options{CacheDir: cache})
	if st := d.Stats(); st.Fetched > int64(len(data))/3 {
		t.Errorf("opening fetched %d of %d bytes", st.Fetched, len(data))
	}
	if !bytes.Equal(epoch(t, d, opts, 0), want) || d.ID() != local.ID() {
		t.Error("other bytes than from the local file")
	}
	if st := d.Stats(); st.Fetched > int64(len(data)) || !d.Complete() {
		t.Errorf("%d bytes were fetched of %d; complete %v", st.Fetched, len(data), d.Complete())
	}
	d.Close()
	file := filepath.Join(d.Dir(), hdf5Name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, data) {
		t.Error("a complete mirror is not the file")
	}
	for _, at := range []int{60, len(text) / 2} { // of the books, and of the records
		text[at] ^= 4
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, b, "a/ds.h5", Options{CacheDir: cache})
	if !bytes.Equal(epoch(t, again, opts, 0), want) {
		t.Error("a poisoned mirror gave its poison")
	}
}

// Data that is compressed is fetched whole.
func TestPackedHDF5(t *testing.T) {
	const path = "../../internal/h5chunk/testdata/small-packed.h5"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	local, err := mmapds.OpenWith(path, mmapds.Options{})
	if err != nil {
		t.Skip(err)
	}
	defer local.Close()
	b := new(remote.Memory)
	b.Put("p.h5", data)
	d := open(t, b, "p.h5", Options{})
	opts := loader.Options{BatchSize: 4, Order: loader.Shuffle{}}
	if !bytes.Equal(epoch(t, d, opts, 0), epoch(t, local, opts, 0)) {
		t.Error("other bytes than from the local file")
	}
}
