package source

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
)

func TestReadReusesMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	big := bytes.Repeat([]byte("0123456789"), 100_000)
	require.NoError(t, os.WriteFile(path, big, 0o666))
	buf, err := File{rootOf(t, path), path}.Bytes(nil)
	if err != nil || !bytes.Equal(buf, big) {
		t.Fatalf("read %d bytes, %v", len(buf), err)
	}
	again, err := File{rootOf(t, path), path}.Bytes(buf)
	if err != nil || !bytes.Equal(again, big) || &again[0] != &buf[0] {
		t.Errorf("read %d bytes, %v, or into other memory", len(again), err)
	}
	if _, err := (File{rootOf(t, path), path + "y"}).Bytes(buf); err == nil || strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one without the path", err)
	}
}

// A file that says it is empty, as those of /proc do, is read to its end.
func TestReadUnknownLength(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc on " + runtime.GOOS)
	}
	data, err := File{rootOf(t, "/proc/self"), "/proc/self/status"}.Bytes(nil)
	if err != nil || len(data) < 100 {
		t.Errorf("read %d bytes, %v", len(data), err)
	}
}

// rootOf opens the files of the source at path.
func rootOf(t testing.TB, path string) *vfs.Root {
	t.Helper()
	root, err := OpenRoot(path, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}
