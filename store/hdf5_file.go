package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
)

// openHDF5File opens an HDF5 file and reads its metadata, see [layout.OpenHDF5File]. The caller closes the file.
func openHDF5File(path, generation string) (*os.File, *meta.File, error) {
	f, err := vfs.OpenRegular(path)
	if err != nil {
		return nil, nil, layout.WithoutPath(err)
	}
	info, err := f.Stat()
	var file *meta.File
	if err == nil {
		file, err = layout.OpenHDF5File(path, f, info.Size(), generation)
	}
	if err != nil {
		return nil, nil, errors.Join(layout.WithoutPath(err), f.Close())
	}
	return f, file, nil
}

// hdf5Manifest reads the manifest in an HDF5 file. The error is fs.ErrNotExist if the file has no manifest.
func hdf5Manifest(file *meta.File) (*Manifest, []byte, error) {
	text, err := layout.HDF5Text(file, layout.HDF5Manifest)
	if err != nil {
		return nil, nil, err
	}
	m, err := DecodeManifest(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", layout.HDF5Manifest, err)
	}
	return m, text, nil
}

// findInHDF5 is Folder.Find for an HDF5 file.
func findInHDF5(path, generation string) (*Manifest, []byte, error) {
	f, file, err := openHDF5File(path, generation)
	if errors.Is(err, meta.ErrNotHDF5) {
		return nil, nil, NoGenerations(path)
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	m, text, err := hdf5Manifest(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, NoGenerations(path)
	}
	return m, text, err
}

// noList returns the error of listing generations of the file at path.
func noList(path string) error {
	if _, _, err := findInHDF5(path, ""); err != nil {
		return err
	}
	return layout.OneGeneration(path)
}
