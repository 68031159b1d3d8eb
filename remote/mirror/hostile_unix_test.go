//go:build unix

package mirror

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/testkit/require"
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
	require.NoError(t, err)
	for _, path := range []string{folder, link} {
		if err := makeCache(path); !errors.Is(err, private.ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A mirror's folder is a real one of this user.
func TestPlantedMirror(t *testing.T) {
	dir, target := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(target, filepath.Join(dir, "m")))
	if _, err := openFolder(filepath.Join(dir, "m")); !errors.Is(err, private.ErrForeign) {
		t.Errorf("got %v", err)
	}
}

// A mirror is refused if others could write to it, or have written to it.
func TestMirrorOfOthers(t *testing.T) {
	dir := t.TempDir()
	open, mixed := filepath.Join(dir, "open"), filepath.Join(dir, "mixed")
	require.NoError(t, errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.MkdirAll(filepath.Join(mixed, "x"), 0o700)))
	if folder, err := openFolder(mixed); err != nil {
		t.Errorf("one of this user: %v", err)
	} else {
		folder.Close()
	}
	refused := []string{open}
	if os.Geteuid() == 0 { // who alone can make a file of another user
		planted := filepath.Join(mixed, "x", "c.0")
		require.NoError(t, errors.Join(os.WriteFile(planted, nil, 0o600), os.Chown(planted, 61002, 61002)))
		refused = append(refused, mixed)
	}
	for _, path := range refused {
		if _, err := openFolder(path); !errors.Is(err, private.ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
