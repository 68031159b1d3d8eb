package hdf5

import (
	"bytes"
	"os"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// mmapds maps and verifies the files of this package, and finds a flipped bit.
func TestMapped(t *testing.T) { eachContainer(t, testMapped) }

func testMapped(t *testing.T) {
	const n = 50
	s := everyType()
	path := buildFile(t, s, n, n, store.Info{})
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	for name, want := range contents(s, n) {
		v, err := ds.Slice(name, 0, n)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(v.Bytes(), want) {
			t.Errorf("%s: other values", name)
		}
	}
	require.NoError(t, ds.Close())
	located, err := store.Open(path, store.OpenOptions{})
	require.NoError(t, err)
	if v, err := verify.Dataset(t.Context(), located, verify.Options{}); err != nil || v.Corruptions != 0 || v.Bytes != int64(n*s.RecordBytes()) {
		t.Errorf("%+v, %v", v, err)
	}
	b := read(t, path)
	b[layout.Of(located).Columns[3].Extents[0].Offset+7] ^= 1
	require.NoError(t, os.WriteFile(path+".bad", b, 0o666))
	if located, err = store.Open(path+".bad", store.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if v, err := verify.Dataset(t.Context(), located, verify.Options{}); err != nil || v.Corruptions != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}
