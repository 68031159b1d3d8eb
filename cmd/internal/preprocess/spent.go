package preprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// spentParts is the name of a folder of parts while it is removed: who looks for parts finds
// none or all of them, and a merge that was killed there finds what it was about.
func spentParts(folder, id string) string {
	folder = filepath.Clean(folder)
	return filepath.Join(filepath.Dir(folder), "."+filepath.Base(folder)+".merged-"+id)
}

// gone reports whether there is no such folder.
func gone(folder string) bool {
	_, err := vfs.Stat(folder)
	return errors.Is(err, fs.ErrNotExist)
}

// removeParts removes the folders of the parts that dataset id was made of.
func removeParts(folders []string, id string) error {
	for _, f := range folders {
		if gone(f) {
			continue
		}
		err := private.RemoveOwn(spentParts(f, id))
		if err == nil {
			err = os.Rename(f, spentParts(f, id))
		}
		if err != nil {
			return errRemove(err)
		}
	}
	for _, f := range folders {
		if err := private.RemoveOwn(spentParts(f, id)); err != nil {
			return errRemove(err)
		}
	}
	return nil
}

func errRemove(err error) error {
	return fmt.Errorf("the dataset is made, but its parts cannot be removed: %w", err)
}

// removedBefore returns the summary of a dataset that a merge before this one has made, some
// of whose parts it has removed. What it had begun to remove goes, too. It is nil where all
// folders are there, and where nothing says that they were of that dataset: neither what is
// left of them nor --resume.
func (c MergeConfig) removedBefore(folders []string) (*Summary, error) {
	left := slices.DeleteFunc(slices.Clone(folders), gone)
	if len(left) == len(folders) {
		return nil, nil
	}
	m, err := openManifest(c.Dest)
	if err != nil || m.Source == nil || !allBecame(left, m) {
		return nil, nil // that parts are missing will be the error
	}
	begun := slices.ContainsFunc(folders, func(f string) bool { return !gone(spentParts(f, m.ID)) })
	if !begun && (!c.Resume || c.Overwrite) {
		return nil, nil
	}
	if begun {
		if err := removeParts(folders, m.ID); err != nil {
			return nil, err
		}
	}
	return Config{Source: strings.Join(folders, " "), Dest: c.Dest, Workers: c.Workers}.found(m, infoOf(m))
}

// allBecame reports whether all parts in some folders can be of a dataset.
func allBecame(folders []string, m *store.Manifest) bool {
	for _, f := range folders {
		names, err := partsIn(f)
		if err != nil {
			return false
		}
		for _, name := range names {
			if p, err := readPart(name); err != nil || !p.Plan.became(m) {
				return false
			}
		}
	}
	return true
}
