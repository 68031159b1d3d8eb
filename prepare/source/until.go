package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
)

// OpenUntil opens a file whose reads fail with the cause of ctx after the end of ctx. The check is in each read
// because one block of records can take many reads.
func OpenUntil(ctx context.Context, root *vfs.Root, path string) (vfs.File, error) {
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	return fileUntil{f, ctx}, nil
}

// OpenSized is OpenUntil, and also returns the size of the file in bytes. Its errors do not name the path.
func OpenSized(ctx context.Context, root *vfs.Root, path string) (vfs.File, int64, error) {
	f, err := OpenUntil(ctx, root, path)
	if err != nil {
		return nil, 0, WithoutPath(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(WithoutPath(err), f.Close())
	}
	return f, info.Size(), nil
}

// fileUntil is a file that cannot be read after the end of ctx.
type fileUntil struct {
	vfs.File
	ctx context.Context
}

// Read implements io.Reader.
func (f fileUntil) Read(b []byte) (int, error) {
	if f.ctx.Err() != nil {
		return 0, context.Cause(f.ctx)
	}
	return f.File.Read(b)
}

// ReadAt implements io.ReaderAt.
func (f fileUntil) ReadAt(b []byte, off int64) (int, error) {
	if f.ctx.Err() != nil {
		return 0, context.Cause(f.ctx)
	}
	return f.File.ReadAt(b, off)
}

// ReadRange implements vfs.Ranger.
func (f fileUntil) ReadRange(b []byte, off int64) error {
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	if r, ok := f.File.(vfs.Ranger); ok {
		return r.ReadRange(b, off)
	}
	return ReadAt(f.File, b, off)
}

// ReadUntil returns r with reads that fail with the cause of ctx after the end of ctx. It is for decompressors:
// many of their reads need no read of the file, whose own check would come too late.
func ReadUntil(ctx context.Context, r io.ReadCloser) io.ReadCloser { return streamUntil{r, ctx} }

// streamUntil is a stream that cannot be read after the end of ctx.
type streamUntil struct {
	io.ReadCloser
	ctx context.Context
}

// untilStep is the most bytes that are read between two checks of the context.
const untilStep = 1 << 20

// Read implements io.Reader.
func (r streamUntil) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.ReadCloser.Read(b[:min(len(b), untilStep)])
}

// ReadDir lists a folder sorted by name, like Root.ReadDir, and stops at the end of ctx. A folder of millions of
// files takes long to list.
func ReadDir(ctx context.Context, root *vfs.Root, path string) ([]fs.DirEntry, error) {
	var list []fs.DirEntry
	err := root.EachEntry(path, func(some []fs.DirEntry) error {
		list = append(list, some...)
		return context.Cause(ctx)
	})
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}
