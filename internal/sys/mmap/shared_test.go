package mmap

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Two mappings of one part of a file are the same memory, whatever else is mapped of the file, and however it grows.
func TestShared(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "shared"))
	require.NoError(t, err)
	defer f.Close()
	g, n := Granularity(), int(Granularity())
	var parts [][]byte
	for i := range int64(3) {
		if _, err := f.WriteAt(bytes.Repeat([]byte{byte(i)}, n), i*g); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			b, err := Shared(f, i*g, n)
			require.NoError(t, err)
			parts = append(parts, b)
		}
	}
	for i, b := range parts {
		if len(b) != n || b[0] != byte(i/2) || b[n-1] != byte(i/2) {
			t.Fatalf("mapping %d has %d bytes: %d ... %d", i, len(b), b[0], b[n-1])
		}
	}
	parts[2][7] = 99
	at := make([]byte, 1)
	if _, err := f.ReadAt(at, g+7); err != nil || at[0] != 99 || parts[3][7] != 99 {
		t.Errorf("a byte that was written is %d in the file and %d in the other mapping, %v", at[0], parts[3][7], err)
	}
	for _, b := range parts {
		require.NoError(t, UnmapShared(b))
	}
	if _, err := Shared(f, 0, 0); err == nil {
		t.Error("no error for nothing")
	}
}
