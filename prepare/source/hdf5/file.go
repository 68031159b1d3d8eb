// Package hdf5 reads HDF5 files that other programs wrote as columns: numbers, strings, labels, members of
// compounds, lists of variable length, and datasets whose elements are in other files.
//
// A [File] returns the columns (array.Column) of everything that can become a field, and for everything else the
// reason why it cannot. Records are along the first axis of a dataset. Where groups are records or hold rows of
// records, such as the demonstrations of robomimic, Units returns them for package unit, and Cells returns the
// matrices of single-cell files for package cells.
//
// internal/hdf5/meta parses the metadata, and internal/hdf5/chunk reads and decompresses elements without libhdf5,
// so the program needs no C. Both treat the file as untrusted, and so does this package: sizes, offsets and depths
// from a file are limited before they are used, and files that a file names are opened through the source's root.
package hdf5

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
)

// File is an open HDF5 file that columns are read from.
type File struct {
	Hints []string // messages to people about columns that were opened

	ctx   context.Context
	path  string
	f     vfs.File
	meta  *meta.File
	pool  *chunk.Pool
	root  *vfs.Root
	depth int  // number of virtual datasets that led to this file
	inner bool // the caller of Open closes root

	mu    sync.Mutex
	named map[string]vfs.File // external files, by path
}

// New returns a File for the open file f, whose metadata is file. Close closes f, too.
func New(ctx context.Context, root *vfs.Root, path string, f vfs.File, file *meta.File) *File {
	return &File{ctx: ctx, root: root, path: path, f: f, meta: file, pool: chunk.NewPool(0)}
}

// Open opens a file that another program wrote. The caller closes root.
func Open(ctx context.Context, root *vfs.Root, path string) (*File, error) {
	f, size, err := source.OpenSized(ctx, root, path)
	if err != nil {
		return nil, err
	}
	file, err := meta.Open(f, size)
	if err != nil {
		return nil, errors.Join(source.WithoutPath(err), f.Close())
	}
	opened := New(ctx, root, path, f, file)
	opened.inner = true
	return opened, nil
}

// Close closes the file and the external files of its datasets. A file that a virtual dataset has opened (depth > 0)
// shares pool and root with the first file, which closes both.
func (f *File) Close() error {
	err := f.f.Close()
	for _, other := range f.named {
		err = errors.Join(err, other.Close())
	}
	// Files of virtual datasets share pool and root with the file that was opened first.
	if f.depth == 0 {
		f.pool.Close()
		if !f.inner {
			err = errors.Join(err, f.root.Close())
		}
	}
	return err
}

// records returns the reader of a dataset whose elements are in this file, in external files, or in other datasets.
// External files together have the bytes of a contiguous dataset, so an ordinary reader reads them as one file from
// offset 0.
func (f *File) records(d *meta.Dataset) (array.Records, error) {
	opts := chunk.Options{Pool: f.pool, References: true}
	switch {
	// The dataset is then contiguous, and has no bytes in this file.
	case len(d.External) > 0:
		inside := *d
		inside.External, inside.Layout.Offset = nil, 0
		return chunk.NewReader(&external{f, d.External}, &inside, opts)
	case d.Err == nil && d.Layout.Kind == meta.Virtual:
		return f.virtual(d)
	}
	return chunk.NewReader(f.f, d, opts)
}

// place returns the path of another file that a dataset names. A relative name starts at the folder of f.
func (f *File) place(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.path), filepath.FromSlash(name))
}

// external reads the external files of a dataset, one after the other, as if they were one file.
type external struct {
	file  *File
	files []meta.ExternalFile
}

// ReadAt implements io.ReaderAt. Sizes and offsets come from the file, so they are compared with limits before they are
// added. A negative size means that the part has no end.
func (e *external) ReadAt(b []byte, off int64) (n int, err error) {
	for _, part := range e.files {
		if part.Size >= 0 && off >= part.Size {
			off -= part.Size
			continue
		}
		room := b[n:]
		if part.Size >= 0 {
			room = room[:min(int64(len(room)), part.Size-off)]
		}
		if part.Offset < 0 || off > 1<<62-part.Offset {
			return n, fmt.Errorf("%s from byte %d: %w", part.Name, part.Offset, meta.ErrCorrupt)
		}
		if err := e.read(part.Name, room, part.Offset+off); err != nil {
			return n, err
		}
		n, off = n+len(room), 0
		if n == len(b) {
			return n, nil
		}
	}
	return n, io.ErrUnexpectedEOF
}

func (e *external) read(name string, b []byte, off int64) error {
	f, err := e.file.open(name)
	if err == nil {
		err = source.ReadAt(f, b, off)
	}
	if err != nil {
		return fmt.Errorf("external file %s: %w", name, source.WithoutPath(err))
	}
	return nil
}

// open opens an external file at its first use. The file stays open until Close, since every record may need it.
func (f *File) open(name string) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.named[name]; other != nil {
		return other, nil
	}
	other, err := source.OpenUntil(f.ctx, f.root, f.place(name))
	if err != nil {
		return nil, err
	}
	if f.named == nil {
		f.named = make(map[string]vfs.File)
	}
	f.named[name] = other
	return other, nil
}
