package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// The encoders of the standard library may change from one Go release to the next, so the
// bytes are held for the release that go.mod names.
func TestCommittedFilesAreGenerated(t *testing.T) {
	if !strings.HasPrefix(runtime.Version(), "go1.26") {
		t.Skip("the files were generated with Go 1.26, this is", runtime.Version())
	}
	files, err := generate()
	require.NoError(t, err)
	want := map[string]bool{}
	for _, f := range files {
		want[f.path] = true
		data, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(f.path)))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(data, f.data) {
			t.Errorf("%s is not what go run ./testdata/gen writes", f.path)
		}
	}
	for _, sub := range []string{"raw", "corrupt"} {
		walk := func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && !want[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] {
				t.Errorf("%s is not generated", path)
			}
			return err
		}
		if err := filepath.WalkDir(filepath.Join("..", sub), walk); err != nil {
			t.Error(err)
		}
	}
}

func TestWriteTwiceGivesTheSame(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		require.NoError(t, write(dir))
	}
	files, err := generate()
	require.NoError(t, err)
	if len(files) < 4*perClass+20 {
		t.Fatalf("only %d files", len(files))
	}
	total := 0
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.path)))
		if err != nil || !bytes.Equal(data, f.data) {
			t.Fatalf("%s: %v", f.path, err)
		}
		total += len(data)
	}
	if total > 1500<<10 {
		t.Errorf("%d bytes, want 1.5 MB at most", total)
	}
}
