// Package vfs opens files by path, wherever they are: files of the system as package os does, at its speed, and files
// of file systems that were mounted, such as buckets of an object store.
//
// A mounted file system has a path of its own, such as s3:/lab: package filepath joins, cuts and cleans such paths like
// any other. So a source that reads folders reads a bucket without a line of code for buckets.
//
// A [Root] confines what a source may open to one folder: names in tables and links in archives come from strangers,
// and must not lead to /etc/passwd. See [Root] for the rules.
package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// File is an open file, such as an *os.File.
type File interface {
	io.ReadSeekCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
	Name() string
}

// Ranger is a File whose reads have a price each, so that it also reads all around what is asked for.
type Ranger interface {
	File

	// ReadRange fills b from offset on, by a request for these bytes alone. A range that is not in the file is an
	// error.
	ReadRange(b []byte, offset int64) error
}

// FS is a file system that can be mounted. Names are valid in the sense of io/fs.ValidPath: with slashes, and "." for
// the root. Open returns a File.
type FS interface {
	fs.ReadDirFS
	fs.StatFS

	// ReadFile appends the content of a file to buf.
	ReadFile(name string, buf []byte) ([]byte, error)
}

// Version names the version of a file of a mounted file system, such as the ETag of an object: [fs.FileInfo.Sys]
// returns it. It is "" if that is not known.
type Version string

var (
	mu     sync.Mutex
	mounts atomic.Pointer[[]mount] // nil or empty: there is none
)

type mount struct {
	path string // with slashes
	fsys FS
}

// Mount makes a file system reachable below a path, which no other file system has. The
// function that Mount returns unmounts it.
func Mount(path string, fsys FS) (unmount func()) {
	m := &mount{filepath.ToSlash(path), fsys}
	change(func(list []mount) []mount { return append(list, *m) })
	return func() {
		change(func(list []mount) []mount {
			var out []mount
			for _, other := range list {
				if other.fsys != fsys || other.path != m.path {
					out = append(out, other)
				}
			}
			return out
		})
	}
}

// change replaces the list of mounts by a changed copy. Every Open reads the list, and must not take a lock for it.
func change(f func([]mount) []mount) {
	mu.Lock()
	defer mu.Unlock()
	var list []mount
	if old := mounts.Load(); old != nil {
		list = append(list, *old...)
	}
	list = f(list)
	mounts.Store(&list)
}

// find returns the file system that path is in, and its name there; nil for the system's.
func find(path string) (FS, string) {
	list := mounts.Load()
	if list == nil || len(*list) == 0 {
		return nil, ""
	}
	path = filepath.ToSlash(filepath.Clean(path))
	for _, m := range *list {
		if path == m.path {
			return m.fsys, "."
		}
		if rest, ok := strings.CutPrefix(path, m.path+"/"); ok {
			return m.fsys, rest
		}
	}
	return nil, ""
}

// Mounted reports whether path is in a mounted file system.
func Mounted(path string) bool {
	fsys, _ := find(path)
	return fsys != nil
}

// Open opens a regular file for reading.
func Open(path string) (File, error) {
	fsys, name := find(path)
	if fsys == nil {
		f, err := OpenRegular(path)
		if err != nil {
			return nil, err // not f, which would be a File that is not nil
		}
		return f, nil
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	file, ok := f.(File)
	if !ok {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: it is a folder", fs.ErrInvalid)}
	}
	return file, nil
}

// ReadFile appends the content of a file to buf.
func ReadFile(path string, buf []byte) ([]byte, error) {
	if fsys, name := find(path); fsys != nil {
		return fsys.ReadFile(name, buf)
	}
	data, err := os.ReadFile(path)
	return append(buf, data...), err
}

// Stat describes a file or folder.
func Stat(path string) (fs.FileInfo, error) {
	if fsys, name := find(path); fsys != nil {
		return fsys.Stat(name)
	}
	return os.Stat(path)
}

// Lstat is Stat without following a link.
func Lstat(path string) (fs.FileInfo, error) {
	if fsys, name := find(path); fsys != nil {
		return fsys.Stat(name)
	}
	return os.Lstat(path)
}

// ReadDir lists a folder, by name.
func ReadDir(path string) ([]fs.DirEntry, error) {
	if fsys, name := find(path); fsys != nil {
		return fsys.ReadDir(name)
	}
	return os.ReadDir(path)
}

// readDirStep is how many entries EachEntry reads at a time.
const readDirStep = 4096

// EachEntry calls f with the entries of a folder, some at a time, in no order. An error of f ends it.
func EachEntry(path string, f func([]fs.DirEntry) error) error {
	if fsys, name := find(path); fsys != nil {
		list, err := fsys.ReadDir(name)
		if err != nil {
			return err
		}
		return f(list)
	}
	d, err := OpenFolder(path)
	if err != nil {
		return err
	}
	return eachEntry(d, f)
}

// eachEntry closes d.
func eachEntry(d *os.File, f func([]fs.DirEntry) error) error {
	defer d.Close()
	for {
		list, err := d.ReadDir(readDirStep)
		if len(list) > 0 {
			if err := f(list); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// TreeBytes returns the bytes of a file, or of all files in a folder and below it.
func TreeBytes(path string) (total int64, err error) {
	err = WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// WalkDir calls f for a file, or for a folder and all below it, as filepath.WalkDir.
func WalkDir(path string, f fs.WalkDirFunc) error {
	fsys, name := find(path)
	if fsys == nil {
		return filepath.WalkDir(path, f)
	}
	return fs.WalkDir(fsys, name, func(found string, e fs.DirEntry, err error) error {
		return f(rooted(path, name, found), e, err)
	})
}

// rooted returns the path of a name in the file system that has path by another name.
func rooted(path, name, found string) string {
	path = filepath.ToSlash(filepath.Clean(path))
	switch {
	case name != ".":
		return strings.TrimSuffix(path, name) + found
	case found == ".":
		return path
	}
	return path + "/" + found
}
