package part

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// AllBecame reports whether a dataset can be made of all the parts in some folders. A folder or a part that cannot be
// read counts as no: what is not known to be in the dataset must not be removed.
func AllBecame(folders []string, m *store.Manifest) bool {
	for _, f := range folders {
		names, err := List(f)
		if err != nil {
			return false
		}
		for _, name := range names {
			if p, err := Read(name); err != nil || !p.Plan.Became(m) {
				return false
			}
		}
	}
	return true
}

// Remove removes the folders of the parts that dataset id was built from. All folders are renamed before the first is
// removed: a merge that is run again finds all parts or, by the names, that they were merged, and never some of the
// files of a part.
func Remove(folders []string, id string) error {
	for _, f := range folders {
		if Gone(f) {
			continue
		}
		err := private.RemoveOwn(TrashPath(f, id))
		if err == nil {
			err = os.Rename(f, TrashPath(f, id))
		}
		if err != nil {
			return RemoveError(err)
		}
	}
	for _, f := range folders {
		if err := private.RemoveOwn(TrashPath(f, id)); err != nil {
			return RemoveError(err)
		}
	}
	return nil
}

// Gone reports whether there is no such folder.
func Gone(folder string) bool {
	_, err := vfs.Stat(folder)
	return errors.Is(err, fs.ErrNotExist)
}

// TrashPath is the name of a folder of parts while it is removed. So a process that looks for parts finds all of them
// or none. The name has the dataset's id, by which a merge that was killed during the removal knows what it had to
// remove.
func TrashPath(folder, id string) string {
	folder = filepath.Clean(folder)
	return filepath.Join(filepath.Dir(folder), "."+filepath.Base(folder)+".merged-"+id)
}

func RemoveError(err error) error {
	return fmt.Errorf("the dataset is made, but its parts cannot be removed: %w", err)
}
