// Package bucketfs makes the objects of a bucket look like files in folders, for package vfs to mount: folders are the
// prefixes of keys up to a "/". Objects are read by ranges, whole blocks at a time, some of which are kept.
//
// One listing finds all objects below a folder, and answers every later Stat and ReadDir: a store lists 1000 keys in
// the time of one request for one key.
package bucketfs

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/remote"
)

// FS is the objects of a bucket below a prefix. Its methods may be called from any goroutine.
// They hold up to 128 MiB of blocks of objects, for all open files together, unless Hold sets another limit, and up to
// 128 MiB of whole objects.
type FS struct {
	ctx    context.Context
	client *requests.Client
	prefix string // with a slash at its end, or empty
	blocks *cache
	wholes *cache
	listed atomic.Pointer[snapshot] // nil until List
	kept   atomic.Pointer[kept]     // nil until Keep
}

// New returns the objects whose keys begin with prefix and a slash, or all for an empty
// prefix. Its requests end with ctx.
func New(ctx context.Context, c *requests.Client, prefix string) *FS {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	f := &FS{ctx: ctx, client: c, prefix: prefix}
	f.blocks, f.wholes = newCache(f.load), newCache(f.load)
	return f
}

// Hold sets how many bytes of blocks stay in memory, at least 128 MiB: what is read twice should be fetched once.
func (f *FS) Hold(bytes int64) { f.blocks.setLimit(max(bytes, cacheBytes)) }

// maxWhole bounds what ReadFile takes into memory.
const maxWhole = 1 << 30

// key returns the key of a name.
func (f *FS) key(name string) string {
	if name == "." {
		return strings.TrimSuffix(f.prefix, "/")
	}
	return f.prefix + name
}

// folder returns the prefix of the keys in a folder.
func (f *FS) folder(name string) string {
	if name == "." {
		return f.prefix
	}
	return f.prefix + name + "/"
}

func failed(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func check(op, name string) error {
	if !fs.ValidPath(name) {
		return failed(op, name, fs.ErrInvalid)
	}
	return nil
}

// Stat implements fs.StatFS. A folder exists if a key is in it.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	if err := check("stat", name); err != nil {
		return nil, err
	}
	if i, known := f.known(name); known {
		if i.name == "" {
			return nil, failed("stat", name, fs.ErrNotExist)
		}
		return i, nil
	}
	if key := f.key(name); key != "" {
		o, err := f.client.Stat(f.ctx, key)
		if err == nil {
			return info{name: path.Base(name), size: o.Size, tag: o.ETag}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, failed("stat", name, err)
		}
	}
	for _, err := range f.client.List(f.ctx, f.folder(name), "/") {
		if err != nil {
			return nil, failed("stat", name, err)
		}
		return info{name: path.Base(name), dir: true}, nil
	}
	return nil, failed("stat", name, fs.ErrNotExist)
}

// ReadDir implements fs.ReadDirFS, page by page.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := check("open", name); err != nil {
		return nil, err
	}
	if s := f.listed.Load(); s.has(name) {
		if list := s.folders[name]; list != nil {
			return slices.Clone(list), nil
		}
		return nil, failed("open", name, fs.ErrNotExist)
	}
	prefix := f.folder(name)
	var list []fs.DirEntry
	for o, err := range f.client.List(f.ctx, prefix, "/") {
		if err != nil {
			return nil, failed("open", name, err)
		}
		base, ok := strings.CutPrefix(o.Key, prefix)
		base = strings.TrimSuffix(base, "/")
		if !ok || base == "" || !fs.ValidPath(base) || strings.Contains(base, "/") {
			continue // the mark of an empty folder, or a key that is not a path
		}
		list = append(list, fs.FileInfoToDirEntry(info{name: base, size: o.Size, tag: o.ETag, dir: o.Folder}))
	}
	if len(list) == 0 {
		return nil, failed("open", name, fs.ErrNotExist)
	}
	return list, nil
}

// ReadFile implements vfs.FS: in one request, as whole objects are small.
func (f *FS) ReadFile(name string, buf []byte) ([]byte, error) {
	if err := check("open", name); err != nil {
		return buf, err
	}
	if i, known := f.known(name); known && i.size <= maxWhole {
		return f.readKnown(name, i, buf)
	}
	data, _, err := f.client.ReadAll(f.ctx, f.key(name), maxWhole)
	if err != nil {
		return buf, failed("read", name, err)
	}
	if len(buf) == 0 {
		return data, nil
	}
	return append(buf, data...), nil
}

// readKnown appends the object that List found to buf. One that was replaced since is an error.
func (f *FS) readKnown(name string, i info, buf []byte) ([]byte, error) {
	if i.name == "" || i.dir {
		return buf, failed("read", name, fs.ErrNotExist)
	}
	o := remote.Object{Key: f.key(name), Size: i.size, ETag: i.tag}
	if i.size <= maxCached {
		data, err := f.wholes.get(o, wholeObject)
		if err != nil {
			return buf, failed("read", name, err)
		}
		return append(buf, data...), nil
	}
	at := len(buf)
	buf = slices.Grow(buf, int(i.size))[:at+int(i.size)]
	if err := f.load(o, 0, buf[at:]); err != nil {
		return buf[:at], failed("read", name, err)
	}
	return buf, nil
}

// Open implements fs.FS. It returns a vfs.File; the file of a folder can only be listed.
func (f *FS) Open(name string) (fs.File, error) {
	if err := check("open", name); err != nil {
		return nil, err
	}
	if i, known := f.known(name); known {
		switch {
		case i.name == "":
			return nil, failed("open", name, fs.ErrNotExist)
		case i.dir:
			return folder{i}, nil
		}
		return &file{fsys: f, object: remote.Object{Key: f.key(name), Size: i.size, ETag: i.tag}, name: name}, nil
	}
	o, err := f.client.Stat(f.ctx, f.key(name))
	if err != nil {
		if dir, dirErr := f.Stat(name); dirErr == nil && dir.IsDir() {
			return folder{dir}, nil
		}
		return nil, failed("open", name, err)
	}
	return &file{fsys: f, object: o, name: name}, nil
}

// load reads a part of an object, from the folder of Keep if it has the part.
func (f *FS) load(o remote.Object, off int64, dst []byte) error {
	k := f.kept.Load()
	name := ""
	if k != nil && o.ETag != "" {
		if name = partName(f.client.Name(o.Key), o, off, len(dst)); k.read(name, dst) {
			return nil
		}
	}
	err := f.client.ReadAt(f.ctx, o, off, dst)
	if err == nil && name != "" {
		k.write(name, dst)
	}
	return err
}

// info describes an object or folder.
type info struct {
	name string
	size int64
	tag  string // names the version of an object; "" if it is not known
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return vfs.Version(i.tag) }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// folder is a folder that was opened; it can be listed only by its FS.
type folder struct{ fs.FileInfo }

func (f folder) Stat() (fs.FileInfo, error) { return f.FileInfo, nil }
func (f folder) Close() error               { return nil }

func (f folder) Read([]byte) (int, error) {
	return 0, failed("read", f.Name(), errors.New("is a folder"))
}
