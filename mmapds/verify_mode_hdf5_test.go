package mmapds_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
)

func TestChecksOfHDF5(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path, schema(), hdf5.Options{Records: 100})
	require.NoError(t, err)
	defer w.Close()
	for i := range 100 {
		require.NoError(t, w.Append(record(i)))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	ds := openChecked(t, path, mmapds.VerifyAlways)
	require.NoError(t, readers["gather"](ds, "images", 80))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[layout.Of(ds.Files()).Columns[0].Extents[0].Offset+75*1800] ^= 1
	replaceFile(t, path, data)
	ds = openChecked(t, path, mmapds.VerifyFirstTouch)
	err = readers["gather"](ds, "images", 80)
	var d *store.CorruptionError
	if !errors.As(err, &d) || d.Record() != 80 || d.First != 72 || d.Last != 99 || d.Path != path {
		t.Errorf("got %v", err)
	}
	require.NoError(t, readers["gather"](ds, "images", 71))
}
