package zarr

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Files are the files of a hierarchy, wherever they are. The files that Open returns implement [File]. The methods may be
// called from any goroutine.
type Files = fs.ReadDirFS

// File is an open file.
type File interface {
	fs.File
	io.ReaderAt
}

// open opens a file and returns its size; nil if the file does not exist.
func open(files Files, name string) (File, int64, error) {
	opened, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	f, ok := opened.(File)
	info, err := opened.Stat()
	if err == nil && (!ok || !info.Mode().IsRegular()) {
		err = corrupt("%s is not a file", name)
	}
	if err != nil {
		opened.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// zipped is a zip file as Files.
type zipped struct {
	src  io.ReaderAt
	size int64
	root string // in the zip file: the folder that is the hierarchy
	z    *zip.Reader
	by   map[string]*zip.File // by name
}

// Zip returns the files in a zip file of that size. If the hierarchy is in a folder of the zip file, names are relative
// to that folder.
func Zip(src io.ReaderAt, size int64) (Files, error) {
	z, err := zip.NewReader(src, size)
	if err != nil {
		return nil, fmt.Errorf("zip file: %w: %w", err, meta.ErrCorrupt)
	}
	best := -1
	root := ""
	by := make(map[string]*zip.File, len(z.File))
	for _, m := range z.File {
		by[m.Name] = m
		dir, base := path.Split(m.Name)
		if depth := strings.Count(dir, "/"); isMetadata(base) && (best < 0 || depth < best) {
			best, root = depth, dir
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("a zip file without metadata of Zarr: %w", ErrNotZarr)
	}
	return &zipped{src, size, root, z, by}, nil
}

// Open implements Files.
func (z *zipped) Open(name string) (fs.File, error) {
	m := z.by[z.root+name]
	if m == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if m.Method == zip.Store {
		offset, err := m.DataOffset()
		if err == nil && m.UncompressedSize64 > uint64(z.size-offset) {
			err = fmt.Errorf("%d bytes at byte %d of %d", m.UncompressedSize64, offset, z.size)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", name, err, meta.ErrCorrupt)
		}
		return member{io.NewSectionReader(z.src, offset, int64(m.UncompressedSize64)), m.FileInfo()}, nil
	}
	const mostInflated = 1032 // bytes out of one
	if m.UncompressedSize64/mostInflated > m.CompressedSize64 {
		return nil, fmt.Errorf("%s: %d bytes cannot come out of %d: %w", name, m.UncompressedSize64, m.CompressedSize64,
			meta.ErrCorrupt)
	}
	f, err := m.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, err, meta.ErrCorrupt)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, err, meta.ErrCorrupt)
	}
	return member{io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), m.FileInfo()}, nil
}

// member is an open file of a zip file: the part of the zip file where it is stored, or its inflated bytes.
type member struct {
	*io.SectionReader
	info fs.FileInfo
}

func (m member) Close() error               { return nil }
func (m member) Stat() (fs.FileInfo, error) { return m.info, nil }

// ReadDir implements Files.
func (z *zipped) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(z.z, path.Join(z.root, name))
}

// mostBytes limits the size of a file of metadata, which is held in memory as a whole. Consolidated metadata of a root
// includes the metadata of all nodes, so the limit is large.
const mostBytes = 1 << 30

// ReadFile returns the content of a file of metadata. Its error is fs.ErrNotExist if the file does not exist.
func ReadFile(files Files, name string) ([]byte, error) {
	text, err := readAll(files, name, mostBytes)
	if err == nil && text == nil {
		err = fs.ErrNotExist
	}
	return text, err
}

// readAll returns the content of a file, and nil if it does not exist. A file of more than most bytes is an error.
func readAll(files Files, name string, most int64) ([]byte, error) {
	f, size, err := open(files, name)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	if size > most {
		return nil, fmt.Errorf("%s: %d bytes, more than %d: %w", name, size, most, meta.ErrUnsupported)
	}
	b := make([]byte, size)
	return b, readFull(f, b, 0)
}

// readFull fills b with the bytes of a file from off on.
func readFull(f File, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("the file ends before byte %d: %w", off+int64(len(b)), meta.ErrCorrupt)
	}
	return err
}

// Names of the files of metadata.
const (
	nodeName         = "zarr.json" // version 3
	groupName        = ".zgroup"   // version 2
	arrayName        = ".zarray"
	attributesName   = ".zattrs"
	consolidatedName = ".zmetadata"
)

func isMetadata(base string) bool {
	return slices.Contains([]string{nodeName, groupName, arrayName, consolidatedName}, base)
}
