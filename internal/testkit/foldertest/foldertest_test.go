package foldertest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestFiles(t *testing.T) {
	dir, inner := t.TempDir(), filepath.Join("a", ".b", "c")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", ".b"), 0o777))
	want := map[string]string{"x": "1", inner: "2"}
	for name, data := range want {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666))
	}
	if got := Files(t, dir); !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Files(t, filepath.Join(dir, inner)); !maps.Equal(got, map[string]string{".": "2"}) {
		t.Errorf("of a file: %q", got)
	}
	if got := Files(t, t.TempDir()); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of what is not there: %v", err)
	}
}
