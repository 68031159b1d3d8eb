package layout

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// CheckZarr checks the parts of a Zarr folder written by penstock that are neither rows nor
// compared with the manifest by OpenZarr: the indexes of shards, and padding. It returns how many
// bytes these are with all metadata, and the files of the folder that do not belong to the dataset.
// The error is ErrCorrupt if a part has changed.
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
		errs = append(errs, err)
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
