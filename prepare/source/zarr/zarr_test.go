package zarr

import (
	"archive/zip"
	"io"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/vfs/bucketfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
)

const files = "../../../internal/zarr/testdata/"

// mount puts the hierarchy of a zip file, and the zip file itself, into a bucket, and returns the bucket's path.
func mount(t *testing.T, name string) string {
	t.Helper()
	z, err := zip.OpenReader(files + name + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	c := requests.NewClient(&remote.Memory{Name: "mem://lab", Pages: 3}, remote.Policy{})
	put := func(key string, data []byte) {
		if err := c.WriteAll(t.Context(), key, data, remote.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range z.File {
		r, err := m.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		put("x.zarr/"+m.Name, b)
	}
	whole, err := source.File(files + name + ".zip").Bytes(nil)
	if err != nil {
		t.Fatal(err)
	}
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
	s, err := Open(t.Context(), path, source.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b []byte
	for sample, err := range s.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		v := source.NewValues(1)
		if err := sample.Data.Read(v); err != nil {
			t.Fatal(err)
		}
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
