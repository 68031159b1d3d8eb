package generation

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// File is the HDF5 file of a dataset on this machine.
type File string

var _ write.Home = File("")

// Is reports whether path is that of a file, and not of a folder.
func Is(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Folder implements write.Home.
func (f File) Folder() store.Folder { return store.FolderAt(string(f)) }

// Check implements write.Home. It refuses what keeps no generations, and a dataset with an append that was stopped.
func (f File) Check() error { return write.CheckChangeable(string(f)) }

// Hold implements write.Home. Commit finds out whether a generation is still kept, whose bytes stay in any case.
func (f File) Hold(*store.Manifest) (release func() error, err error) {
	return func() error { return nil }, nil
}

// checkName refuses the name of a field that the metadata of a file has.
func checkName(field string) error {
	if "/"+field != path.Dir(layout.HDF5Manifest) {
		return nil
	}
	return fmt.Errorf("HDF5 files keep their metadata under the name %q; choose another one", field)
}

// Spool implements write.Home: the stage is next to the file.
func (f File) Spool(field string) (dest string, release func(), err error) {
	if err := checkName(field); err != nil {
		return "", nil, err
	}
	path, err := filepath.EvalSymlinks(string(f))
	return path + "." + field + write.ColumnName, func() {}, err
}

// errFiles is the error for files that would become files of the dataset, which has one.
var errFiles = errors.New("an HDF5 file has no other files: Commit writes its columns")

// Publish implements write.Home.
func (f File) Publish(*write.Stage, []write.Published) error { return errFiles }

// Unpublish implements write.Home.
func (f File) Unpublish([]string) error { return errFiles }
