package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
)

// A manifest or tag that is too large is refused by its size: none of its bytes are read.
func TestSparseManifest(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, layout.ManifestName)
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 20<<30)); err != nil {
		t.Skipf("no sparse file of 20 GiB here: %v", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open(dir, OpenOptions{})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("it took %d bytes", took)
	}
}
