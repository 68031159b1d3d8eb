package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/vfs"
)

// fence is the folder that the files of a source have to lie in. A table or a link in data from others could name
// any file that this user may read, and a dataset is published.
type fence struct {
	dir     string // relative paths are relative to it
	outside bool   // other files may be read, too
}

// errOutside is the error of files outside.
var errOutside = errors.New("it lies outside of the source's folder; --outside reads such files, if you trust the source")

// check returns the error of a file that lies outside, by its path or by where links lead. Files of buckets have no
// links. What is not there, or cannot be looked at, is for the one who opens it.
func (f fence) check(path string) error {
	if f.outside {
		return nil
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if vfs.Mounted(f.dir) {
		dir, abs = filepath.Clean(f.dir), filepath.Clean(path)
	}
	if !within(abs, dir) {
		return errOutside
	}
	if vfs.Mounted(path) {
		return nil
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return withoutPath(err)
	}
	if real == abs {
		return nil
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return withoutPath(err)
	}
	if !within(real, dir) {
		return errOutside
	}
	return nil
}

// within reports whether a path is a folder, or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// leadsOutside is the Data of a link in a folder of images that leads outside.
type leadsOutside struct{}

func (leadsOutside) Read(v *Values) error {
	v.Make(0, 0)
	return fmt.Errorf("is a link: %w", errOutside)
}
