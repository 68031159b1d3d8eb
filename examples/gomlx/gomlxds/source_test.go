package gomlxds_test

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/penstock/penstock/examples/gomlx/gomlxds"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// rows is a Source in memory: "x", two float32 that say which record it is, and "y", an
// int64 that does.
type rows struct {
	n    int
	fail int // record that cannot be read; -1 for none

	mu    sync.Mutex
	given map[uintptr]bool // where Gather was asked to write "x"
}

func newRows(n int) *rows { return &rows{n: n, fail: -1, given: map[uintptr]bool{}} }

func (r *rows) Len() int { return r.n }

func (r *rows) Specs() []tensor.Spec {
	return []tensor.Spec{
		{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{2}},
		{Name: "y", DType: tensor.Int64},
	}
}

func (r *rows) Gather(_ context.Context, field string, indices []int, dst []byte) error {
	if field == "x" {
		r.mu.Lock()
		r.given[uintptr(unsafe.Pointer(unsafe.SliceData(dst)))] = true
		r.mu.Unlock()
	}
	for i, k := range indices {
		if k == r.fail {
			return errors.New("the disk is on fire")
		}
		if field == "x" {
			v := tensor.As[float32](tensor.Of(r.Specs()[0], 1, dst[8*i:8*i+8]))
			v[0], v[1] = float32(k), float32(-k)
		} else {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(k))
		}
	}
	return nil
}

func (r *rows) Slice(field string, a, b int) (tensor.View, error) {
	indices := make([]int, b-a)
	for i := range indices {
		indices[i] = a + i
	}
	spec := r.Specs()[0]
	if field == "y" {
		spec = r.Specs()[1]
	}
	dst := make([]byte, 8*(b-a))
	return tensor.Of(spec, b-a, dst), r.Gather(context.Background(), field, indices, dst)
}

// wroteTo reports whether Gather was asked to write "x" to that address.
func (r *rows) wroteTo(at uintptr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.given[at]
}

func (*rows) Prefetch(string, int, int) error { return nil }
func (*rows) Retain() error                   { return nil }
func (*rows) Release()                        {}

// goBackend is GoMLX's in plain Go.
func goBackend(t testing.TB) compute.Backend {
	t.Helper()
	backend, err := gobackend.New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Finalize)
	return backend
}

// config gives "x" to the model and "y" to the loss.
func config(t testing.TB) gomlxds.Config {
	return gomlxds.Config{Backend: goBackend(t), Inputs: []string{"x"}, Labels: []string{"y"}}
}

func open(t testing.TB, src loader.Source, o loader.Options, c gomlxds.Config) *gomlxds.Dataset {
	t.Helper()
	d, err := gomlxds.New(src, o, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// take returns the labels of up to n batches of one Iter, and frees them.
func take(t testing.TB, d *gomlxds.Dataset, n int) [][]int64 {
	t.Helper()
	var out [][]int64
	if n == 0 {
		return nil
	}
	for b, err := range d.Iter() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, values[int64](t, b.Labels[0]))
		if err := b.Finalize(); err != nil {
			t.Fatal(err)
		}
		if len(out) == n {
			break
		}
	}
	return out
}

func values[T interface{ int32 | int64 | float32 | bool }](t testing.TB, x *tensors.Tensor) []T {
	t.Helper()
	v, err := tensors.CopyFlatData[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// tokens is a dataset of eight records; record i has i times the number i.
func tokens(t *testing.T) *mmapds.Dataset {
	t.Helper()
	dest := filepath.Join(t.TempDir(), "tokens")
	schema := store.Schema{Fields: []store.Field{store.NewRagged("tokens", tensor.Int64)}}
	w, err := flat.Create(dest, schema, flat.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	record := store.NewRecord(schema)
	for i := range 8 {
		record.Values[0] = record.Values[0][:0]
		for range i {
			record.Values[0] = binary.LittleEndian.AppendUint64(record.Values[0], uint64(i))
		}
		if err := w.Append(record); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	ds, err := mmapds.Open(dest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}
