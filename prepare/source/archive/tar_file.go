package archive

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// tarFile is an archive whose members are read from their places, by any number of goroutines. It is opened by the
// first read.
type tarFile struct {
	root *vfs.Root
	path string

	mu   sync.Mutex
	file vfs.File
	was  fs.FileInfo // when it was listed first; nil before that
}

// tarPlace is where the bytes of a member are.
type tarPlace struct {
	file      *tarFile
	at, bytes int64
}

func newTarFiles(root *vfs.Root, paths []string) (list []*tarFile) {
	for _, p := range paths {
		list = append(list, &tarFile{root: root, path: p})
	}
	return list
}

// tarFileAt returns the one at path; nil where members are read in order.
func tarFileAt(list []*tarFile, path string) *tarFile {
	if i := slices.IndexFunc(list, func(f *tarFile) bool { return f.path == path }); i >= 0 {
		return list[i].seen()
	}
	return nil
}

// seen notes what the file is now, unless that was done before.
func (f *tarFile) seen() *tarFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.was == nil {
		f.was, _ = f.root.Stat(f.path) // the listing that follows reports what is wrong
	}
	return f
}

// open opens the archive at the first member that is asked for, so that a source of a thousand shards has few of them
// open.
func (f *tarFile) open() (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		return f.file, nil
	}
	file, err := f.root.Open(f.path)
	if err != nil {
		return nil, source.WithoutPath(err)
	}
	f.file = file
	return file, nil
}

// errRewritten is the error of an archive whose members may be elsewhere by now.
var errRewritten = errors.New("the archive was written to since it was listed; open it again")

// load reads a member at its place. The archive must be the one that was listed: in another, the place holds other
// bytes that may well be an image.
func (p *tarPlace) load() ([]byte, error) {
	file, err := p.file.open()
	if err != nil {
		return nil, err
	}
	now, err := file.Stat()
	if was := p.file.was; err != nil || was == nil || now.Size() != was.Size() || now.ModTime() != was.ModTime() {
		return nil, errors.Join(source.WithoutPath(err), errRewritten)
	}
	data := make([]byte, p.bytes)
	if err := source.ReadAt(file, data, p.at); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, source.WithoutPath(err)
	}
	return data, nil
}

func (f *tarFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
