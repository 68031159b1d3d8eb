package kinds

import (
	"archive/zip"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// zipped returns an archive with one member of that content.
func zipped(f testing.TB, name string, data []byte) []byte {
	f.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	require.NoError(f, err)
	return b.Bytes()
}

func FuzzNPZ(f *testing.F) {
	const header = "\x93NUMPY\x01\x00\x36\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}\n"
	f.Add(zipped(f, "x.npy", []byte(header+"ab")))
	f.Add(zipped(f, "../x.npy", []byte(header+"ab")))
	f.Add(zipped(f, "x.npy", []byte(header[:40])))
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "npz", "x.npz", data) })
}

func FuzzHDF5(f *testing.F) {
	for _, name := range []string{"small-old-basic.h5", "small-new-dense.h5"} {
		data, err := os.ReadFile("../../../internal/hdf5/meta/testdata/" + name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("\x89HDF\r\n\x1a\n\x02\x08\x08\x00"))
	f.Add([]byte("\x89HDF\r\n\x1a\n\x00\x00\x00\x00\x00\x08\x08\x00\x04\x00\x10\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "hdf5", "x.h5", data) })
}

// A flat dataset with another manifest, or another file, is refused, or read to its end.
func FuzzFlat(f *testing.F) {
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, 4), store.NewRagged("t", tensor.Int32)}}
	dir := filepath.Join(f.TempDir(), "ds")
	w, err := flat.Create(dir, schema, flat.Options{})
	require.NoError(f, err)
	defer w.Close()
	r := store.NewRecord(schema)
	for i := range 5 {
		r.Values[0], r.Values[1] = []byte{1, 2, 3, byte(i)}, make([]byte, 4*i)
		require.NoError(f, w.Append(r))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		f.Fatal(err)
	}
	files := foldertest.Files(f, dir)
	names := slices.Sorted(maps.Keys(files))
	for i, name := range names {
		f.Add(i, []byte(files[name]))
	}
	f.Add(slices.Index(names, layout.ManifestName), []byte(strings.ReplaceAll(files[layout.ManifestName], `"x-`, `"../x-`)))
	f.Add(slices.Index(names, layout.ManifestName), []byte(strings.ReplaceAll(files[layout.ManifestName], ": 5", ": 9223372036854775807")))
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		changed := maps.Clone(files)
		if which < 0 || which >= len(names) {
			return
		}
		changed[names[which]] = string(data)
		at := t.TempDir()
		for name, text := range changed {
			require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o666))
		}
		readAll(t, "", at)
	})
}
