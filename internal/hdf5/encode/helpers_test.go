package encode

import (
	"bytes"
	"os"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read returns all records of a dataset.
func read(t *testing.T, file []byte, path string) []byte {
	t.Helper()
	f, err := meta.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Dataset(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := chunk.NewMapped(file, d, chunk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dst := make([]byte, r.Len()*int64(r.RecordBytes()))
	if err := r.Records(t.Context(), dst, 0, r.Len()); err != nil {
		t.Fatal(err)
	}
	return dst
}
