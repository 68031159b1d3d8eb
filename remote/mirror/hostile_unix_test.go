//go:build unix

package mirror

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/sys/private"
)

// A cache that another user owns, or has put a link in the place of, is refused.
func TestForeignCache(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can create folders that another user owns")
	}
	const stranger = 61002
	dir := t.TempDir()
	folder, link := filepath.Join(dir, "cache"), filepath.Join(dir, "link")
	err := errors.Join(os.Mkdir(folder, 0o755), os.Chown(folder, stranger, stranger), os.Symlink(t.TempDir(), link), os.Lchown(link, stranger, stranger))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, link} {
		if err := makeCache(path); !errors.Is(err, private.ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A mirror's folder is a real one of this user.
func TestPlantedMirror(t *testing.T) {
	dir, target := t.TempDir(), t.TempDir()
	if err := os.Symlink(target, filepath.Join(dir, "m")); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(filepath.Join(dir, "m")); !errors.Is(err, private.ErrForeign) {
		t.Errorf("got %v", err)
	}
}
