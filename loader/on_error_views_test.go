package loader_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// halfMapped has records whose field x is one piece of memory, and whose field y is not, as labels and compressed images
// of an HDF5 file are. Record 5 of y cannot be read. Both are the record's number plus 1.
type halfMapped struct{ x []byte }

func (*halfMapped) Len() int                               { return 8 }
func (*halfMapped) Prefetch(string, int, int) error        { return nil }
func (*halfMapped) Retain() error                          { return nil }
func (*halfMapped) Release()                               {}
func (*halfMapped) Contiguous(field string, a, b int) bool { return field == "x" }
func (h *halfMapped) Slice(_ string, a, b int) (tensor.View, error) {
	return tensor.Of(h.Specs()[0], b-a, h.x[a:b]), nil
}

func (*halfMapped) Specs() []tensor.Spec {
	return []tensor.Spec{{Name: "x", DType: tensor.Uint8}, {Name: "y", DType: tensor.Uint8}}
}

func (*halfMapped) Gather(_ context.Context, field string, indices []int, dst []byte) error {
	for k, i := range indices {
		if field == "y" && i == 5 {
			return addressed{5}
		}
		dst[k] = byte(i + 1)
	}
	return nil
}

// The substitute of a bad record is in all fields, also where some of them could be views.
func TestOnErrorWithSomeViews(t *testing.T) {
	src := &halfMapped{}
	for i := range src.Len() {
		src.x = append(src.x, byte(i+1))
	}
	for _, on := range []loader.OnError{loader.Backfill, loader.Blank} {
		ld, err := loader.New(src, loader.Options{BatchSize: 4, OnError: on})
		require.NoError(t, err)
		defer ld.Close()
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			x, y := b.Field("x").Bytes(), b.Field("y").Bytes()
			want := []byte{}
			for k, i := range b.Indices() {
				want = append(want, byte(i+1))
				if on == loader.Blank && !b.Mask()[k] {
					want[k] = 0
				}
			}
			if !slices.Equal(x, want) || !slices.Equal(y, want) || fmt.Sprint(b.Mask()) != fmt.Sprint([]bool{true, b.Step() == 0, true, true}) {
				t.Errorf("OnError %d, batch %d: x %v, y %v, want %v; mask %v", on, b.Step(), x, y, want, b.Mask())
			}
		}
	}
}
