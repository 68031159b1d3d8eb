package requests

import (
	"bytes"
	"context"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/penstock/penstock/remote"
)

// Folder is the objects under a key of a bucket, as a file system of small files: each is read at once when it is
// opened. Its errors are errors of package remote.
type Folder struct {
	ctx    context.Context
	client *Client
	key    string
	ahead  map[string]*ahead // by name
}

// ahead is a file that is read before it is opened.
type ahead struct {
	done chan struct{} // closed when the other fields are set
	file *smallFile
	err  error
}

// Folder returns the objects and folders under a key.
func (c *Client) Folder(ctx context.Context, key string) *Folder {
	return &Folder{ctx: ctx, client: c, key: key, ahead: make(map[string]*ahead)}
}

// Prefetch begins to read a file that is probably opened. The caller waits for it by calling wait, whether it was
// opened or not, and may end the Folder's context before. wait returns the error of reading the file.
func (f *Folder) Prefetch(name string) (wait func() error) {
	a := &ahead{done: make(chan struct{})}
	f.ahead[name] = a
	go func() {
		defer close(a.done)
		a.file, a.err = f.read(name)
	}()
	return func() error {
		<-a.done
		return a.err
	}
}

// mostRead is the limit of a file.
const mostRead = 1 << 30

// Key returns the key of a file.
func (f *Folder) Key(name string) string { return path.Join(f.key, name) }

// Open implements fs.FS.
func (f *Folder) Open(name string) (fs.File, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err // not a nil *smallFile
	}
	return file, nil
}

// open takes the file that Prefetch began to read, or reads it now.
func (f *Folder) open(name string) (*smallFile, error) {
	if a := f.ahead[name]; a != nil {
		delete(f.ahead, name)
		<-a.done
		return a.file, a.err
	}
	return f.read(name)
}

func (f *Folder) read(name string) (*smallFile, error) {
	data, o, err := f.client.ReadAll(f.ctx, f.Key(name), mostRead)
	if err != nil {
		return nil, err
	}
	return &smallFile{bytes.NewReader(data), fileInfo{o}}, nil
}

// Stat implements fs.StatFS.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	o, err := f.client.Stat(f.ctx, f.Key(name))
	if err != nil {
		return nil, err
	}
	return fileInfo{o}, nil
}

// ReadDir implements fs.ReadDirFS. A folder without objects is an empty one.
func (f *Folder) ReadDir(name string) (list []fs.DirEntry, err error) {
	for o, err := range f.client.List(f.ctx, strings.TrimPrefix(f.Key(name)+"/", "/"), "/") {
		if err != nil {
			return nil, err
		}
		list = append(list, fs.FileInfoToDirEntry(fileInfo{o}))
	}
	return list, nil
}

// smallFile is a file of a Folder.
type smallFile struct {
	*bytes.Reader
	info fileInfo
}

func (f *smallFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *smallFile) Close() error               { return nil }

// fileInfo describes an object.
type fileInfo struct{ object remote.Object }

func (i fileInfo) Name() string       { return path.Base(i.object.Key) }
func (i fileInfo) Size() int64        { return i.object.Size }
func (i fileInfo) ModTime() time.Time { return i.object.Modified }
func (i fileInfo) IsDir() bool        { return i.object.Folder }
func (i fileInfo) Sys() any           { return nil }

func (i fileInfo) Mode() fs.FileMode {
	if i.object.Folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
