package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// openGeneration opens a generation of the HDF5 file at path, by its number or a tag; "" is the newest one. The caller
// closes the file.
func openGeneration(path, generation string) (*os.File, *layout.HDF5File, error) {
	f, err := vfs.OpenRegular(path)
	if err != nil {
		return nil, nil, layout.WithoutPath(err)
	}
	file, err := readGrowing(f, generation)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; all are listed by: %s", err, shell.Penstock("log", path))
	}
	if err != nil {
		return nil, nil, errors.Join(layout.Mark(layout.WithoutPath(err)), f.Close())
	}
	return f, file, nil
}

// mostCommits is how many changes that are committed while a file is opened have it read again.
const mostCommits = 100

// readGrowing reads the metadata of a generation. If a change is committed between the size of the file and its
// superblock, that ends beyond this size, and both are read again.
func readGrowing(f *os.File, generation string) (file *layout.HDF5File, err error) {
	size := int64(-1)
	for range mostCommits {
		info, statErr := f.Stat()
		if statErr != nil {
			return nil, statErr
		}
		if info.Size() == size {
			break
		}
		size = info.Size()
		if file, err = layout.OpenHDF5Generation(f, size, generation); err == nil {
			break
		}
	}
	return file, err
}

// hdf5Manifest reads the manifest in a file. The error is fs.ErrNotExist if it has none.
func hdf5Manifest(file *meta.File) (*Manifest, error) {
	text, err := layout.HDF5Text(file, layout.HDF5Manifest)
	if err != nil {
		return nil, err
	}
	m, err := DecodeManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", layout.HDF5Manifest, err)
	}
	return m, nil
}

// readHDF5Generation is Folder.Find for a file.
func readHDF5Generation(path, generation string) (m *Manifest, text []byte, err error) {
	f, file, err := openGeneration(path, generation)
	if errors.Is(err, meta.ErrNotHDF5) {
		return nil, nil, NoGenerations(path)
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if m, err = hdf5Manifest(file.File); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, NoGenerations(path)
	}
	if err != nil {
		return nil, nil, err
	}
	text, err = layout.HDF5Text(file.File, layout.HDF5Manifest)
	return m, text, err
}

// hdf5History returns the history of the file at path.
func hdf5History(path string) (h layout.HDF5History, err error) {
	f, file, err := openGeneration(path, "")
	if errors.Is(err, meta.ErrNotHDF5) {
		return h, NoGenerations(path)
	}
	if err != nil {
		return h, err
	}
	defer f.Close()
	h, err = layout.ReadHDF5History(file.File)
	if errors.Is(err, fs.ErrNotExist) {
		return h, NoGenerations(path)
	}
	return h, err
}

// hdf5Tags returns the tags of the file at path.
func hdf5Tags(path string) (tags []Tag, err error) {
	h, err := hdf5History(path)
	for _, t := range h.Tags {
		tags = append(tags, Tag(t))
	}
	return tags, err
}

// hdf5Time returns when a generation of the file at path was committed: the newest one, when the file was written.
func hdf5Time(path string, generation int) (time.Time, error) {
	h, err := hdf5History(path)
	if err != nil {
		return time.Time{}, err
	}
	if g := h.Find(generation); g != nil {
		return g.Time, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, layout.WithoutPath(err)
	}
	return info.ModTime(), nil
}
