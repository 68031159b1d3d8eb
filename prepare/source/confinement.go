package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/penstock/penstock/internal/vfs"
)

// Confinement is the folder that the files of a source have to be in. A table or a link in data from others could name
// any file that this user may read, and a dataset is published.
type Confinement struct {
	Dir     string // relative paths are relative to it
	Outside bool   // other files may be read, too
}

// ErrOutside is the error of files outside.
var ErrOutside = errors.New("it is outside of the source's folder; " +
	"if you trust the source, prepare it with --outside, in Python preprocess(outside=True)")

// Check returns the error of a file that is outside, by its path or by where links lead. Files of buckets have no
// links. Missing or unreadable files are the error of opening them.
func (f Confinement) Check(path string) error {
	if f.Outside {
		return nil
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if vfs.Mounted(f.Dir) {
		dir, abs = filepath.Clean(f.Dir), filepath.Clean(path)
	}
	if !within(abs, dir) {
		return ErrOutside
	}
	if vfs.Mounted(path) {
		return nil
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return WithoutPath(err)
	}
	if real == abs {
		return nil
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return WithoutPath(err)
	}
	if !within(real, dir) {
		return ErrOutside
	}
	return nil
}

// within reports whether a path is a folder, or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// LeadsOutside is the Data of a link in a folder of images that leads outside.
type LeadsOutside struct{}

func (LeadsOutside) Read(v *Values) error {
	v.Make(0, 0)
	return fmt.Errorf("is a link: %w", ErrOutside)
}
