package encode

import (
	"bytes"
	"os"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

// read returns all records of a dataset.
func read(t *testing.T, file []byte, path string) []byte {
	t.Helper()
	f, err := meta.Open(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	d, err := f.Dataset(path)
	require.NoError(t, err)
	r, err := chunk.NewMapped(file, d, chunk.Options{})
	require.NoError(t, err)
	defer r.Close()
	dst := make([]byte, r.Len()*int64(r.RecordBytes()))
	require.NoError(t, r.Records(t.Context(), dst, 0, r.Len()))
	return dst
}
