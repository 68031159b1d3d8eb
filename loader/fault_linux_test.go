package loader_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// TestFaultInMappedMemoryIsAnError truncates a file under a Source that maps it and has no
// guard of its own.
func TestFaultInMappedMemoryIsAnError(t *testing.T) {
	const n, width = 64, 4096
	m := newMemorySource(n, width)
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, m.data[0], 0o666))
	m.data[0] = mapFile(t, path, n*width)
	ld := open(t, m, loader.Options{BatchSize: 8, Workers: 2, Sampler: sampler.Shuffle{}})
	visit(t, ld, 0)
	require.NoError(t, os.Truncate(path, 40*width))
	_, err := run(context.Background(), ld, ignore)
	var e *loader.Error
	if !errors.As(err, &e) || e.Record < 40 || !strings.Contains(err.Error(), "panic: runtime error") {
		t.Errorf("error %v; want a fault at a record from 40 on", err)
	}
}

func mapFile(t *testing.T, path string, size int) []byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	return b
}
