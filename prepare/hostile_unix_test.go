//go:build unix

package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
)

// The folder in which datasets are built that go to buckets has a name that anybody can compute. One that
// another user has put there is refused, and what it leads to stays as it is.
func TestPlantedSpools(t *testing.T) {
	const stranger = 61002
	name := fmt.Sprintf("penstock-%d", os.Geteuid())
	plants := map[string]func(t *testing.T, spool, target string) error{
		"link": func(t *testing.T, spool, target string) error { return os.Symlink(target, filepath.Join(spool, name)) },
		"wide folder": func(t *testing.T, spool, target string) error {
			at := filepath.Join(spool, name)
			return errors.Join(os.Mkdir(at, 0o777), os.Chmod(at, 0o777))
		},
		"folder where all can rename": func(t *testing.T, spool, target string) error { return os.Chmod(spool, 0o777) },
	}
	if os.Geteuid() == 0 {
		plants["folder of another user"] = func(t *testing.T, spool, target string) error {
			at := filepath.Join(spool, name)
			return errors.Join(os.Mkdir(at, 0o755), os.Chown(at, stranger, stranger))
		}
	}
	src := rawtest.Folder(t, 6)
	b := useBucket(t, src)
	for what, plant := range plants {
		t.Run(what, func(t *testing.T) {
			target, spool := t.TempDir(), t.TempDir()
			rawtest.Put(t, target, "thesis.tex", []byte("the only copy"))
			want := foldertest.Files(t, target)
			require.NoError(t, errors.Join(os.Chmod(spool, 0o777|fs.ModeSticky), plant(t, spool, target)))
			c := config(t, src)
			c.Dest, c.Spool = urlOf("out/ds"), spool
			_, err := Run(t.Context(), c, &rawtest.Silent{})
			if !errors.Is(err, private.ErrForeign) {
				t.Errorf("got %v", err)
			}
			if got := foldertest.Files(t, target); !maps.Equal(got, want) {
				t.Errorf("files of the victim were changed: %v", got)
			}
			if keys := keysOf(t, b, "out"); len(keys) > 0 {
				t.Errorf("sent: %v", keys)
			}
		})
	}
}

// Folders next to a dataset with names that others can guess: links under them are not followed.
func TestPlantedFolders(t *testing.T) {
	for _, ending := range []string{".unshuffled", ".building", ".skipped.jsonl.building"} {
		t.Run(ending, func(t *testing.T) {
			target := t.TempDir()
			rawtest.Put(t, target, "thesis.tex", []byte("the only copy"))
			rawtest.Put(t, target, "manifest.json", []byte("{}"))
			want := foldertest.Files(t, target)
			c := config(t, raggedRows(t, 20))
			c.Images.Resize, c.Images.Crop, c.Skip = nil, nil, true
			c.Shuffle = Seed{Set: true, Seed: 3}
			c.Overwrite = true
			require.NoError(t, os.Symlink(target, filepath.Join(filepath.Dir(c.Dest), "."+filepath.Base(c.Dest)+ending)))
			if _, err := Run(t.Context(), c, &rawtest.Silent{}); err == nil {
				t.Error("a link was used as a folder")
			}
			if got := foldertest.Files(t, target); !maps.Equal(got, want) {
				t.Errorf("files of the victim were changed: %v", got)
			}
		})
	}
	t.Run(".parts", func(t *testing.T) {
		target := t.TempDir()
		c := config(t, rawtest.Folder(t, 4))
		c.Rank = part.Rank{Index: 0, Size: 2}
		require.NoError(t, os.Symlink(target, part.Folder(c.Dest)))
		if _, err := Run(t.Context(), c, &rawtest.Silent{}); !errors.Is(err, private.ErrForeign) {
			t.Errorf("got %v", err)
		}
		if got := foldertest.Files(t, target); len(got) > 0 {
			t.Errorf("written through a link: %v", got)
		}
	})
}
