package rewrite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/testkit/smalldisk"
	"github.com/penstock/penstock/tensor"
)

// A change for which the disk has no room leaves the old file, and nothing beside it.
func TestFullDisk(t *testing.T) {
	wide := pages
	wide.Shape = tensor.Shape{1 << 16}
	for name, opts := range kinds {
		t.Run(name, func(t *testing.T) {
			dir := smalldisk.New(t, "4m")
			path := filepath.Join(dir, "ds.h5")
			c := begin(t, path, opts, wide, labels)
			filler := filepath.Join(dir, "filler")
			if err := os.WriteFile(filler, make([]byte, 4<<20), 0o666); !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
			info, err := os.Stat(filler)
			if err == nil {
				err = os.Truncate(filler, info.Size()-256<<10)
			}
			require.NoError(t, err)
			if err := second(RenameColumn(path, "labels", "class", Options{})); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("a full disk: %v", err)
			}
			require.NoError(t, is(path, c))
			if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
				t.Errorf("left %v, %v", left, err)
			}
			if err := errors.Join(os.Remove(filler), second(DropColumn(path, []string{"labels"}, Options{}))); err != nil {
				t.Errorf("with room: %v", err)
			}
		})
	}
}
