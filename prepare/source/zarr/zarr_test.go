package zarr

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/vfs/bucketfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

const files = "../../../internal/zarr/testdata/"

// mount puts the hierarchy of a zip file, and the zip file itself, into a bucket, and returns the bucket's path.
func mount(t *testing.T, name string) string {
	t.Helper()
	z, err := zip.OpenReader(files + name + ".zip")
	require.NoError(t, err)
	defer z.Close()
	c := requests.NewClient(&membucket.Memory{Name: "mem://lab", Pages: 3}, remote.Policy{})
	put := func(key string, data []byte) {
		require.NoError(t, c.WriteAll(t.Context(), key, data, remote.WriteOptions{}))
	}
	for _, m := range z.File {
		r, err := m.Open()
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		put("x.zarr/"+m.Name, b)
	}
	whole, err := os.ReadFile(files + name + ".zip")
	require.NoError(t, err)
	put("x.zip", whole)
	t.Cleanup(vfs.Mount("mem:/lab", bucketfs.New(t.Context(), c, "")))
	return "mem:/lab"
}

// all returns the values of all samples of the only field.
func all(t *testing.T, path string) string {
	t.Helper()
	if kind, err := source.Detect(path); kind != "zarr" || err != nil {
		t.Fatalf("%s is of kind %q, %v", path, kind, err)
	}
	s, err := Open(t.Context(), rootOf(t, path), path, source.Options{}, nil)
	require.NoError(t, err)
	defer s.Close()
	var b []byte
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		v := source.NewValues(1)
		require.NoError(t, sample.Data.Read(v))
		b = append(b, v.Get(0)...)
	}
	return string(b)
}

// A hierarchy in a bucket has the values that it has in a zip file, also where chunks were never written.
func TestBucket(t *testing.T) {
	for _, name := range []string{"zarr-3-float32-shards", "zarr-3-float16-nan", "zarr-2-int64-fill"} {
		t.Run(name, func(t *testing.T) {
			root, want := mount(t, name), all(t, files+name+".zip")
			for _, path := range []string{"x.zarr", "x.zip"} {
				if got := all(t, filepath.Join(root, path)); got != want || got == "" {
					t.Errorf("%s: %d bytes, which differ", path, len(got))
				}
			}
		})
	}
}

// Zarr that penstock wrote and changed in a bucket is the source that it is in a folder: its newest generation, without
// records that were deleted and without the arrays of checksums, also if a writer has not replaced the root.
func TestChangedInBucket(t *testing.T) {
	for name, compress := range map[string]*zarr.Compression{"plain": nil, "zstd": {ChunkRecords: 4}} {
		t.Run(name, func(t *testing.T) {
			images, tokens := store.NewField("images", tensor.Uint8, 4, 4), store.NewRagged("tokens", tensor.Int32)
			folder := filepath.Join(t.TempDir(), "ds.zarr")
			w, err := zarr.Create(folder, store.Schema{Fields: []store.Field{images, tokens}},
				zarr.Options{ShardBytes: 16 * 256, Compress: compress})
			require.NoError(t, err)
			r := store.NewRecord(store.Schema{Fields: []store.Field{images, tokens}})
			for i := range 600 {
				r.Values[0] = bytes.Repeat([]byte{byte(i), 7}, 8)
				r.Values[1] = bytes.Repeat([]byte{byte(i), 0, 0, 0}, i%3)
				require.NoError(t, w.Append(r))
			}
			if _, err := w.Commit(store.Info{}); err != nil {
				t.Fatal(err)
			}
			b := &membucket.Memory{Name: "mem://lab", Pages: 3}
			for name, data := range foldertest.Files(t, folder) {
				b.Put("ds.zarr/"+filepath.ToSlash(name), []byte(data))
			}
			d := edit.InBucket(t.Context(), b, "ds.zarr", t.TempDir())
			words := make([]uint64, 10)
			words[3] = 0b111
			for _, change := range []func() (*store.Manifest, error){
				func() (*store.Manifest, error) { return d.DropColumn([]string{"tokens"}, edit.Options{}) },
				func() (*store.Manifest, error) { return d.Delete(edit.Chosen{Words: words}, edit.Options{}) },
			} {
				if _, err := change(); err != nil {
					t.Fatal(err)
				}
			}
			b.Put("ds.zarr/zarr.json", []byte(foldertest.Files(t, folder)["zarr.json"]))
			c := requests.NewClient(b, remote.Policy{})
			t.Cleanup(vfs.Mount("mem:/lab", bucketfs.New(t.Context(), c, "")))
			var want []byte
			for i := range 600 {
				if i < 192 || i > 194 {
					want = append(want, bytes.Repeat([]byte{byte(i), 7}, 8)...)
				}
			}
			if got := all(t, "mem:/lab/ds.zarr"); got != string(want) {
				t.Errorf("%d bytes, want %d", len(got), len(want))
			}
		})
	}
}

// rootOf opens the files of the source at path.
func rootOf(t testing.TB, path string) *vfs.Root {
	t.Helper()
	root, err := source.OpenRoot(path, source.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}
