//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// A dataset of several shards is one mapping, which the driver takes as it is.
func TestDataset(t *testing.T) {
	src := newSource(130, tensor.Shape{3, 32, 32})
	path := filepath.Join(t.TempDir(), "train")
	writeDataset(t, src, path)
	for mode, lazy := range modes {
		t.Run(mode, func(t *testing.T) {
			useFake(t, setting{lazy: lazy, devices: 2})
			ds, err := mmapds.Open(path)
			require.NoError(t, err)
			c := config{src: ds, devices: 2, loader: loader.Options{BatchSize: 16, Fields: []string{"labels"}}}
			c.opts = Options{Fields: []string{"labels"}, Direct: Direct{ds, []string{"images"}}}
			r := c.mustOpen(t)
			for b, err := range r.pf.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				require.NoError(t, r.consume(b, both...))
			}
			require.NoError(t, r.check(src))
			if st := r.pf.Stats(); st.DirectBytes != int64(len(src.images)) || st.Direct[0].Reason != "" {
				t.Errorf("Stats: %+v", st)
			}
			r.mustClose(t)
			if err := ds.Close(); err != nil { // waits for every lease
				t.Error(err)
			}
		})
	}
}

// writeDataset writes a flat dataset of several shards.
func writeDataset(t *testing.T, src *memory, path string) {
	t.Helper()
	schema := store.Schema{Fields: []store.Field{store.NewField("images", tensor.Uint8, src.shape...), store.NewField("labels", tensor.Int64)}}
	w, err := flat.Create(path, schema, flat.Options{ShardBytes: 40 * int64(src.shape.Elems())})
	require.NoError(t, err)
	defer w.Close()
	r, size := store.NewRecord(schema), src.shape.Elems()
	for i := range src.n {
		copy(r.Values[0], src.images[i*size:(i+1)*size])
		copy(r.Values[1], src.labels[i*8:(i+1)*8])
		require.NoError(t, w.Append(r))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
}
