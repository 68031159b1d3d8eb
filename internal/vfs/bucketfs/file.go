package bucketfs

import (
	"io"
	"io/fs"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/remote"
)

// file is an object that is open. It implements vfs.File.
type file struct {
	fsys   *FS
	object remote.Object
	name   string

	mu sync.Mutex
	at int64 // of the next Read
}

func (f *file) Name() string { return f.name }
func (f *file) Close() error { return nil }
func (f *file) Stat() (fs.FileInfo, error) {
	return info{name: f.name, size: f.object.Size, tag: f.object.ETag}, nil
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Seek implements io.Seeker.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.object.Size
	}
	if offset < 0 {
		return 0, failed("seek", f.name, fs.ErrInvalid)
	}
	f.at = offset
	return offset, nil
}

// ReadRange implements vfs.Ranger: in requests for the range alone, several at a time, unless its blocks are there.
func (f *file) ReadRange(p []byte, off int64) error {
	n := int64(len(p))
	if off < 0 || n > f.object.Size || off > f.object.Size-n {
		return failed("read", f.name, io.ErrUnexpectedEOF)
	}
	if f.fsys.blocks.has(f.object, off, n) {
		_, err := f.ReadAt(p, off)
		return err
	}
	var all errgroup.Group
	for part := range slices.Chunk(p, blockBytes) {
		at := off
		off += int64(len(part))
		all.Go(func() error { return f.fsys.load(f.object, at, part) })
	}
	if err := all.Wait(); err != nil {
		return failed("read", f.name, explain(err))
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, failed("read", f.name, fs.ErrInvalid)
	}
	n := 0
	for n < len(p) && off < f.object.Size {
		b, err := f.fsys.blocks.get(f.object, off/blockBytes)
		if err != nil {
			return n, failed("read", f.name, err)
		}
		k := copy(p[n:], b[off%blockBytes:])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
