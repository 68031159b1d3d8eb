//go:build cgo

package hdf5

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// imageSchema is images of that size and their labels.
func imageSchema(h, w int) store.Schema {
	images := store.NewField("images", tensor.Uint8, 3, h, w)
	images.Layout = store.CHW
	labels := store.NewField("labels", tensor.Int64)
	labels.Classes = []string{"cat", "dog", "žluťoučký kůň"}
	return store.Schema{Fields: []store.Field{images, labels}}
}

// fill makes record i of a schema: random bytes, and a label where there are classes.
func fill(s store.Schema, r *store.Record, i int) {
	rng := rand.New(rand.NewPCG(7, uint64(i)))
	for k, f := range s.Fields {
		for j := range r.Values[k] {
			r.Values[k][j] = byte(rng.Uint32())
			if f.DType == tensor.Bool {
				r.Values[k][j] &= 1
			}
		}
		if len(f.Classes) > 0 {
			clear(r.Values[k])
			r.Values[k][0] = byte(i % len(f.Classes))
		}
	}
}

// build writes n records of s into a file made for room of them and returns its path.
func build(t testing.TB, s store.Schema, n, room int, info store.Info) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := Create(path, s, Options{Records: int64(room)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := store.NewRecord(s)
	for i := range n {
		fill(s, r, i)
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(info); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSmoke(t *testing.T) {
	p := build(t, imageSchema(9, 7), 50, 50, store.Info{NormalizeByStatistics: true})
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/smoke.h5", b, 0o666)
	t.Log(Version())
}
