package smalldisk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// A small disk holds less than its size, keeps nothing once it is unmounted, and
// does not wait for open files.
func TestNew(t *testing.T) {
	var name string
	t.Run("mounted", func(t *testing.T) {
		name = filepath.Join(New(t, "64k"), "file")
		if err := os.WriteFile(name, make([]byte, 128<<10), 0o666); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("128 KiB into 64: %v", err)
		}
		if err := os.WriteFile(name, make([]byte, 32<<10), 0o666); err != nil {
			t.Errorf("32 KiB into 64: %v", err)
		}
	})
	if _, err := os.Stat(name); name != "" && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the test: %v", err)
	}
}

func TestUnmount(t *testing.T) {
	dir := t.TempDir()
	unmount, err := Mount(dir, "64k")
	if err != nil {
		t.Skip(err)
	}
	f, err := os.Create(filepath.Join(dir, "file"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unmount())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, error %v", left, err)
	}
}

func TestMountFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := Mount(dir, "64k"); err == nil {
		t.Error("mounted at a folder that is not there")
	}
}
