package mmapds_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// TestChunks puts an array together of its chunks.
func TestChunks(t *testing.T) {
	paths := map[string][]string{h5test.File(t, packedScript): {"gzip", "many", "auto", "wide"}}
	for _, name := range []string{"zarr-3-float32-shards", "zarr-3-int32-blosc", "zarr-3-int16-transpose"} {
		paths[unpackZarr(t, name)] = []string{name}
	}
	for path, fields := range paths {
		ds := open(t, path)
		defer ds.Close()
		for _, field := range fields {
			whole, err := ds.Slice(field, 0, ds.Len())
			require.NoError(t, err)
			checkChunks(t, ds, field, whole)
		}
		if shape := ds.ChunkShape("plain"); shape != nil {
			t.Errorf("an array that is stored as it is has chunks of %v", shape)
		}
		if err := ds.ReadChunk(t.Context(), fields[0], make([]int, 9), nil); err == nil || !strings.Contains(err.Error(), "no chunk") {
			t.Errorf("a chunk of nine axes: %v", err)
		}
	}
}

// checkChunks compares every element of every chunk with the array.
func checkChunks(t *testing.T, ds *mmapds.Dataset, field string, whole tensor.View) {
	t.Helper()
	chunk, dims, size := ds.ChunkShape(field), whole.Shape(), whole.DType().Size()
	if len(chunk) != len(dims) {
		t.Fatalf("%s: chunks of %v in %v", field, chunk, dims)
	}
	dst := make([]byte, tensor.Shape(chunk).Elems()*size)
	at := make([]int, len(dims))
	for {
		require.NoError(t, ds.ReadChunk(t.Context(), field, at, dst))
		for i := range tensor.Shape(chunk).Elems() {
			place, rest, scale, inside := 0, i, 1, true
			for k := len(dims) - 1; k >= 0; k-- {
				x := at[k]*chunk[k] + rest%chunk[k]
				inside, place, rest, scale = inside && x < dims[k], place+x*scale, rest/chunk[k], scale*dims[k]
			}
			if inside && !bytes.Equal(dst[i*size:(i+1)*size], whole.Bytes()[place*size:(place+1)*size]) {
				t.Fatalf("%s: element %d of chunk %v differs", field, i, at)
			}
		}
		k := len(at) - 1
		for ; k >= 0; k-- {
			if at[k]++; at[k]*chunk[k] < dims[k] {
				break
			}
			at[k] = 0
		}
		if k < 0 {
			break
		}
	}
	if err := ds.ReadChunk(t.Context(), field, slices.Clone(dims), dst); err == nil {
		t.Errorf("%s: a chunk beyond the end is read", field)
	}
}
