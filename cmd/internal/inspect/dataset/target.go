// Package dataset opens the DATASET of the subcommands of inspect.
//
//	Target       what a path leads to: a flat folder, Zarr, or an HDF5 file with its metadata
//	Selection    some fields or a split of a dataset, as the flags --field and --split say
//	BatchReader  the records of a field, batch by batch
//	InParts      work on all records in parallel, with a result that does not depend on the machine
//
// A Target can be opened where the dataset itself cannot be, because it is damaged or was written
// by another program, and its errors say what a path is instead of a dataset, and how to convert
// it.
package dataset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// ManifestPath is the path of the manifest in an HDF5 file that penstock wrote: see package
// store/hdf5.
const ManifestPath = "/penstock/manifest"

// Target is the dataset at a path: a folder, flat or Zarr, or an open HDF5 file. Exactly one of
// Flat, Zarr and Meta says which.
type Target struct {
	Path string      // may name a generation: ds@3
	Flat bool        // a folder of .npy files; File and Meta are nil
	Zarr bool        // a folder in Zarr that penstock wrote; File and Meta are nil
	File io.ReaderAt // the HDF5 file
	Meta *meta.File  // its metadata

	close func() error
}

// Open finds out what is at path, and reads the metadata of an HDF5 file. The caller closes the
// Target.
func Open(path string) (*Target, error) {
	name, generation, ok := layout.SplitGeneration(path)
	if ok && layout.KeepsGenerations(name) {
		return &Target{Path: path, Flat: layout.IsFlat(name), Zarr: !layout.IsFlat(name)}, nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && ok && info.IsDir():
		return nil, notFound(path)
	case err != nil:
		return nil, err
	case info.IsDir() && !layout.IsFlat(path) && layout.IsZarr(path):
		return &Target{Path: path, Zarr: true}, nil
	case info.IsDir() && !layout.IsFlat(path):
		return nil, notDataset(path, nil)
	case info.IsDir():
		return &Target{Path: path, Flat: true}, nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: neither a folder nor a regular file", path)
	}
	f, err := vfs.OpenRegular(name)
	if err != nil {
		return nil, err
	}
	file, err := layout.OpenHDF5File(name, f, info.Size(), generation)
	if err != nil {
		f.Close()
		return nil, refused(path, err)
	}
	return &Target{Path: path, File: f, Meta: file, close: f.Close}, nil
}

// refused explains the error of a file that is not a readable HDF5 file. A file of a flat dataset
// is recognized by the folder that it is in.
func refused(path string, err error) error {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, meta.ErrNotHDF5) && layout.IsFlat(dir):
		return fmt.Errorf("%s is a file of the dataset %s; run %s", path, dir,
			shell.On("inspect", dir))
	case errors.Is(err, meta.ErrNotHDF5):
		return notDataset(path, err)
	case errors.Is(err, meta.ErrCorrupt):
		return fmt.Errorf("%s: corrupt or truncated: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Close closes the file. The Target must not be used afterwards.
func (p *Target) Close() {
	if p.close != nil {
		_ = p.close()
	}
}

// ByPenstock reports whether penstock wrote the dataset. A folder has its manifest already, as Open
// requires it; an HDF5 file has one in the dataset ManifestPath.
func (p *Target) ByPenstock() bool {
	if p.Meta == nil {
		return true
	}
	_, err := p.Meta.Dataset(ManifestPath)
	return err == nil
}

// Locate returns where the records are in the files. It maps nothing.
func (p *Target) Locate() (*store.Dataset, error) { return store.Open(p.Path, store.OpenOptions{}) }

// LocateOrTree is Locate, also for an HDF5 file of another program: if its datasets are not fields
// that can be mapped, d is nil and why is the reason, which is not an error of the command.
func (p *Target) LocateOrTree() (d *store.Dataset, why, err error) {
	d, err = p.Locate()
	if err != nil && !p.ByPenstock() && errors.Is(err, store.ErrUnsupported) {
		return nil, err, nil
	}
	return d, nil, err
}

// LocatePacked returns the Dataset of an HDF5 file whose records are chunked or compressed, or nil
// if package mmapds does not read them.
func (p *Target) LocatePacked() *store.Dataset {
	d, err := store.OpenHDF5(p.Path, store.OpenOptions{Packed: true})
	if err != nil {
		return nil
	}
	return d
}

// WithAdvice adds the command that lists all damage to the error of a corrupt flat dataset.
func (p *Target) WithAdvice(err error) error {
	if p.Flat && errors.Is(err, store.ErrCorrupt) {
		return fmt.Errorf("%w (all that is wrong: %s)", err, shell.On("inspect verify", p.Path))
	}
	return err
}

// Innermost returns the reason in err without the outermost wrapping, which names package and path,
// and without ErrUnsupported.
func Innermost(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	// the report prints the command in full
	text, _, _ := strings.Cut(err.Error(), "; make a file that can be: ")
	text = strings.ReplaceAll(text, ownNames, "belong together: fields=[...] of penstock.open, --fields of preprocess")
	return strings.TrimSuffix(text, ": "+store.ErrUnsupported.Error())
}

// forFlags rewords advice of package store, which names options of Go and Python, for the command
// line.
func forFlags(text string) string {
	return strings.ReplaceAll(text, ownNames, "belong together by --field")
}

// ownNames is advice of package store, which names options of Go and Python.
const ownNames = "belong together (fields=[...] in Python, mmapds.WithFields in Go)"

// ForFlags returns err with the text of forFlags. errors.Is still finds the cause.
func ForFlags(err error) error { return worded{err} }

// worded is an error with another text.
type worded struct{ error }

func (w worded) Error() string {
	return strings.TrimSuffix(forFlags(w.error.Error()), ": "+store.ErrUnsupported.Error())
}
func (w worded) Unwrap() error { return w.error }

// UnreadText returns the text of an error of package chunk without the name of the dataset.
func UnreadText(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return strings.TrimSuffix(err.Error(), ": "+meta.ErrUnsupported.Error())
}
