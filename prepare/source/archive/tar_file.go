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

// tarFile is an archive whose members are read from their places, by any number of goroutines. The first read opens
// it, and it stays open until close.
type tarFile struct {
	root *vfs.Root
	path string

	mu   sync.Mutex
	file vfs.File
	was  fs.FileInfo // size and time just before its members were listed; nil before that
}

// tarPlace is the position and size of a member's bytes in its file.
type tarPlace struct {
	file      *tarFile
	at, bytes int64
}

// newTarFiles returns unopened files for paths.
func newTarFiles(root *vfs.Root, paths []string) (list []*tarFile) {
	for _, p := range paths {
		list = append(list, &tarFile{root: root, path: p})
	}
	return list
}

// tarFileAt returns the file at path and notes its state; nil if members are read in order, where list is empty.
func tarFileAt(list []*tarFile, path string) *tarFile {
	if i := slices.IndexFunc(list, func(f *tarFile) bool { return f.path == path }); i >= 0 {
		return list[i].seen()
	}
	return nil
}

// seen notes size and time of the file before its first listing. load compares them, so a change after this point
// is noticed.
func (f *tarFile) seen() *tarFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.was == nil {
		f.was, _ = f.root.Stat(f.path) // the listing that follows reports what is wrong
	}
	return f
}

// open opens the archive on the first read of a member, so that a source of a thousand shards has only the used
// ones open.
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

// errRewritten is the error of a member whose archive changed after it was listed.
var errRewritten = errors.New("the archive was written to since it was listed; open it again")

// load reads the member. The archive must be unchanged since it was listed: in a new archive, other bytes are at
// this place, and they may well be a valid image.
func (p *tarPlace) load() ([]byte, error) {
	file, err := p.file.open()
	if err != nil {
		return nil, err
	}
	// This describes the open file, and not what is at the path by now.
	now, err := file.Stat()
	if was := p.file.was; err != nil || was == nil || now.Size() != was.Size() || now.ModTime() != was.ModTime() {
		return nil, errors.Join(source.WithoutPath(err), errRewritten)
	}
	data := make([]byte, p.bytes)
	if err := source.ReadAt(file, data, p.at); err != nil {
		// EOF would look like the end of something that was read in order.
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
