package layout

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// CheckZarr makes sure that what a folder of Zarr that penstock wrote has beside its rows, and beside what OpenZarr
// compares with the manifest, is as it was written: the indexes of shards, and padding. It returns how many bytes that
// is with all metadata, and the files of the folder that are not of the dataset. An error is ErrCorrupt if that is not
// so.
func (d *Dataset) CheckZarr(path string, metadata map[string]string) (n int64, unknown []string, err error) {
	known := map[string]bool{ZarrManifest: true}
	for name := range metadata {
		known[name] = true
	}
	var errs []error
	for k := range d.Columns {
		c := &d.Columns[k]
		known[c.SumsPath()[1:]+"/"+ZarrSums] = true
		a := d.Arrays[c.Name]
		if a == nil {
			continue
		}
		for name := range a.ShardNames() {
			known[name] = true
		}
		looked, err := a.CheckPadding()
		n += looked
		errs = append(errs, Mark(err))
	}
	err = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(path, file)
		if name = filepath.ToSlash(name); err == nil && !known[name] {
			unknown = append(unknown, name)
		} else if info, err := e.Info(); err == nil && (metadata[name] != "" || name == ZarrManifest) {
			n += info.Size()
		}
		return err
	})
	return n, unknown, errors.Join(append(errs, err)...)
}
