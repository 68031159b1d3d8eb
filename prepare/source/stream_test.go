package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock/penstock/internal/testkit/require"
)

// A few bytes that decompress to very many end the work early.
func TestDecompressionBomb(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	require.NoError(t, os.WriteFile(path, z.EncodeAll(make([]byte, 200<<20), nil), 0o666))
	s, err := OpenStream(t.Context(), rootOf(t, path), path)
	require.NoError(t, err)
	defer s.Close()
	n, buf := int64(0), make([]byte, 1<<16)
	for err == nil {
		var k int
		k, err = s.Read(buf)
		n += int64(k)
	}
	if err != errBomb || n > maxFree+1<<20 {
		t.Errorf("%d bytes came, then %v", n, err)
	}
}
