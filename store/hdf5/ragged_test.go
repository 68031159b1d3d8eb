package hdf5

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

// raggedSchema has numbers, rows, a text, a field that is always empty, and labels.
func raggedSchema() store.Schema {
	text := store.NewRagged("text", tensor.Uint8)
	text.Content = tensor.Text
	return store.Schema{Fields: []store.Field{
		store.NewRagged("tokens", tensor.Int32), store.NewRagged("b/ö x", tensor.BFloat16, 4), text,
		store.NewRagged("nothing", tensor.Float64), store.NewField("labels", tensor.Int64),
	}}
}

func fillRagged(r *store.Record, i int) {
	for k := range 4 {
		r.Values[k] = r.Values[k][:0]
	}
	for k := range i * 31 % 57 {
		r.Values[0] = binary.LittleEndian.AppendUint32(r.Values[0], uint32(i+k*k))
	}
	for k := range i % 3 * 4 {
		r.Values[1] = binary.LittleEndian.AppendUint16(r.Values[1], uint16(tensor.BrainOf(float32(i*k))))
	}
	r.Values[2] = append(r.Values[2], fmt.Sprintf("Zeile %d", i)...)
	binary.LittleEndian.PutUint64(r.Values[4], uint64(i))
}

// raggedNumbered are the records of fillRagged, in the split that splitOf gives each.
func raggedNumbered(splitOf func(i int) string) numbered {
	return numbered{raggedSchema(), func(r *store.Record, i int) {
		fillRagged(r, i)
		r.Split = splitOf(i)
	}}
}

func noSplit(int) string { return "" }

func buildRagged(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.h5")
	raggedNumbered(noSplit).write(t, path, 0, n, Options{}, store.Info{})
	return path
}

// ragged returns what values and offsets of the first four fields have to be, for records in
// that order.
func ragged(order []int) (values [4][]byte, offsets [4][]byte) {
	s := raggedSchema()
	r := store.NewRecord(s)
	for k := range offsets {
		offsets[k] = make([]byte, 8)
	}
	for _, i := range order {
		fillRagged(r, i)
		for k := range values {
			values[k] = append(values[k], r.Values[k]...)
			offsets[k] = binary.LittleEndian.AppendUint64(offsets[k], uint64(len(values[k])/s.Fields[k].RecordBytes()))
		}
	}
	return values, offsets
}

func numbers(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestH5pyReadsRagged(t *testing.T) {
	const n = 300
	got := h5py(t, buildRagged(t, n))
	values, offsets := ragged(numbers(n))
	for k, f := range raggedSchema().Fields[:4] {
		v, o := got.Datasets[f.Name+"/values"], got.Datasets[f.Name+"/offsets"]
		if v.SHA256 != fmt.Sprintf("%x", sha256.Sum256(values[k])) || v.Shape[0] != int64(len(values[k])/f.RecordBytes()) || v.Chunked {
			t.Errorf("%s: other values: %+v", f.Name, v)
		}
		if o.SHA256 != fmt.Sprintf("%x", sha256.Sum256(offsets[k])) || o.DType != "int64" || !slices.Equal(o.Shape, []int64{n + 1}) {
			t.Errorf("%s: other offsets: %+v", f.Name, o)
		}
		if len(values[k]) > 0 && v.Offset%4096 != 0 || o.Offset%4096 != 0 {
			t.Errorf("%s: offsets %d, %d in the file", f.Name, v.Offset, o.Offset)
		}
	}
	if a := got.Datasets["text/values"].Attrs; a["content"] != "utf-8" {
		t.Errorf("text: %v", a)
	}
	if a := got.Datasets["b/ö x/values"].Attrs; a["dtype"] != "bfloat16" {
		t.Errorf("b: %v", a)
	}
	if len(got.Root) != 6 {
		t.Errorf("root: %v", got.Root)
	}
}

func TestRaggedMapped(t *testing.T) { eachContainer(t, testRaggedMapped) }

func testRaggedMapped(t *testing.T) {
	const n = 300
	path := buildRagged(t, n)
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	values, _ := ragged(numbers(n))
	for k, f := range raggedSchema().Fields[:4] {
		v, err := ds.SliceRagged(f.Name, 0, n, make([]int64, n+1))
		if err != nil || !bytes.Equal(v.Bytes(), values[k]) {
			t.Errorf("%s: other values: %v", f.Name, err)
		}
	}
	v, err := verify.Dataset(t.Context(), ds.Files(), verify.Options{})
	if err != nil || v.Corruptions != 0 || !v.Identity || v.Bytes != ds.Files().Bytes() {
		t.Errorf("%+v, %v", v, err)
	}
}

// A number of records that nobody knew gives the same file as one that was known, and the
// same dataset as the flat format.
func TestUnknownNumber(t *testing.T) { eachContainer(t, testUnknownNumber) }

func testUnknownNumber(t *testing.T) {
	s := imageSchema(20, 20)
	known := read(t, buildFile(t, s, 100, 100, store.Info{NormalizeByStatistics: true}))
	dir := t.TempDir()
	path := filepath.Join(dir, "x.h5")
	filled(s).write(t, path, 0, 100, Options{}, store.Info{NormalizeByStatistics: true})
	if !bytes.Equal(read(t, path), known) {
		t.Error("other bytes")
	}
	if left := entries(t, dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
