//go:build unix

package chunk

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
)

// A file that is cut while it is mapped is an error, in helpers and in libraries in C too.
func TestTruncatedMapping(t *testing.T) {
	pool := NewPool(4)
	defer pool.Close()
	for path, cut := range map[string]int64{"old/all": 0, "old/gzip": 4096, "old/plain": 0, "old/flat": 0,
		"plugins/zstd": 0, "plugins/blosc_zstd": 0} {
		file, path, _ := strings.Cut(path, "/")
		readTruncated(t, pool, small(t, "small-"+file+".h5"), path, cut)
	}
}

func readTruncated(t *testing.T, pool *Pool, file []byte, path string, cut int64) {
	name := filepath.Join(t.TempDir(), "x.h5")
	require.NoError(t, os.WriteFile(name, file, 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	view, err := syscall.Mmap(int(f.Fd()), 0, len(file), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Skipf("mmap: %v", err)
	}
	defer syscall.Munmap(view)
	r := mapped(t, file, path, Options{Pool: pool})
	want := all(t, r)
	r.data.src.mapped = view
	require.NoError(t, os.Truncate(name, cut))
	before := debug.SetPanicOnFault(false)
	fresh := *r.data
	fresh.pool, fresh.cache = pool, newCache(8)
	err = (&Reader{data: &fresh}).Records(t.Context(), make([]byte, len(want)), 0, r.Len())
	if after := debug.SetPanicOnFault(before); after {
		t.Error("SetPanicOnFault was left on")
	}
	if !errors.Is(err, meta.ErrCorrupt) || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("%s: error %v", path, err)
	}
}
