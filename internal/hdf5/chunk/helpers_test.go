package chunk

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

func openBytes(t testing.TB, b []byte) *meta.File {
	t.Helper()
	f, err := meta.Open(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	return f
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

// makeFile returns the bytes of a file that h5py writes by the statements of script.
func makeFile(t testing.TB, script string) []byte {
	t.Helper()
	return readFile(t, h5test.File(t, script))
}

// mapped returns a Reader of a dataset in a file that is in memory.
func mapped(t testing.TB, file []byte, path string, opts Options) *Reader {
	t.Helper()
	d, err := openBytes(t, file).Dataset(path)
	require.NoError(t, err)
	r, err := NewMapped(file, d, opts)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// all reads every record.
func all(t testing.TB, r *Reader) []byte {
	t.Helper()
	dst := make([]byte, r.Len()*int64(r.RecordBytes()))
	require.NoError(t, r.Records(t.Context(), dst, 0, r.Len()))
	return dst
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func deflateStd(t testing.TB, b []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zlib.NewWriterLevel(&out, level)
	require.NoError(t, err)
	if _, err = w.Write(b); errors.Join(err, w.Close()) != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
