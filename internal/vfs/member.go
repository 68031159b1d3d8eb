package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// OpenIn opens a regular file of a finished dataset for reading. The folder is the dataset's, and the rules are the
// rules of [Root]: a link in the path is followed as long as it stays in the folder, and no open waits. A dataset that
// is one file, which the user named, has no folder ("") and may be a link.
//
// Unlike a [Root], OpenIn holds nothing open between calls: a view may have thousands of datasets.
func OpenIn(folder, path string) (*os.File, error) {
	if folder == "" {
		return OpenRegular(path)
	}
	f, err := openIn(folder, path, openFile)
	if err != nil {
		return nil, err
	}
	if err := regular(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openIn opens what is at a path in a folder.
func openIn(folder, path string, flags int) (*os.File, error) {
	if f, err := openMember(folder, path, flags); err == nil || errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	// It may be a link whose target is in the folder all the same, or the system cannot tell.
	r, err := OpenRoot(folder, false)
	if err != nil {
		return nil, err
	}
	f, err := r.open(path, flags)
	return f, errors.Join(err, r.Close())
}

// Folder is the folder of a finished dataset as an [fs.FS]. Its files are opened by [OpenIn].
type Folder string

func (f Folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// Open implements fs.FS, for regular files.
func (f Folder) Open(name string) (fs.File, error) {
	file, err := OpenIn(filepath.Clean(string(f)), f.path(name))
	if err != nil {
		return nil, err // not a nil *os.File
	}
	return file, nil
}

// Stat implements fs.StatFS.
func (f Folder) Stat(name string) (fs.FileInfo, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Stat()
}

// ReadDir implements fs.ReadDirFS.
func (f Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	d, err := openIn(filepath.Clean(string(f)), f.path(name), openFolder)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, err := d.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}
