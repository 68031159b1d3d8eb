package dataset

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// Files beyond those that stay open are read all the same, by any number of goroutines.
func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := source.OpenRoot(dir, source.Options{})
	require.NoError(t, err)
	defer root.Close()
	files := &openFiles{root: root}
	name := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	for i := range mostOpen + 10 {
		require.NoError(t, os.WriteFile(name(i), fmt.Appendf(nil, "file %05d", i), 0o666))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			b := make([]byte, 5)
			for i := range mostOpen + 10 {
				if err := files.readAt(name(i), b, 5); err != nil || !bytes.Equal(b, fmt.Appendf(nil, "%05d", i)) {
					t.Errorf("file %d: %q, %v", i, b, err)
				}
			}
		})
	}
	all.Wait()
	if len(files.files) != mostOpen {
		t.Errorf("%d files are open, want %d", len(files.files), mostOpen)
	}
	if err := files.readAt(name(0), make([]byte, 20), 5); err == nil {
		t.Error("bytes after the end of a file were read")
	}
	if err := files.readAt(name(-1), make([]byte, 1), 0); !os.IsNotExist(err) {
		t.Errorf("error %v", err)
	}
	kept := files.get(name(0))
	if err := files.Close(); err != nil || len(files.files) != 0 {
		t.Errorf("%d files are open, %v", len(files.files), err)
	}
	if _, err := kept.Stat(); err == nil {
		t.Error("a file is open after Close")
	}
}
