// Package dataset opens the DATASET of a subcommand of inspect: what a path leads to (Target), a part of its records
// (Selection), and their values, batch by batch (BatchReader).
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

// ManifestPath is where an HDF5 file of penstock has its manifest: see package store/hdf5.
const ManifestPath = "/penstock/manifest"

// Target is the dataset at a path: a folder, flat or Zarr, or an open HDF5 file.
type Target struct {
	Path string      // perhaps with a generation: ds@3
	Flat bool        // a folder; File and Meta are nil
	Zarr bool        // a folder of Zarr that penstock wrote; the same
	File io.ReaderAt // the HDF5 file
	Meta *meta.File  // its metadata

	close func() error
}

// Open opens what is at path. The caller closes the Target.
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

// refused words the error of a file that is not a readable HDF5 file.
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

// Close closes the file. The Target is not used after it.
func (p *Target) Close() {
	if p.close != nil {
		_ = p.close()
	}
}

// ByPenstock reports whether penstock wrote the dataset: a folder has a manifest, and a file a dataset of that name.
func (p *Target) ByPenstock() bool {
	if p.Meta == nil {
		return true
	}
	_, err := p.Meta.Dataset(ManifestPath)
	return err == nil
}

// Locate opens the dataset. It maps nothing.
func (p *Target) Locate() (*store.Dataset, error) { return store.Open(p.Path, store.OpenOptions{}) }

// LocateOrTree is Locate for HDF5 files written by other programs, too: if their datasets are not fields that can be
// mapped, the Dataset is nil and why is the reason.
func (p *Target) LocateOrTree() (d *store.Dataset, why, err error) {
	d, err = p.Locate()
	if err != nil && !p.ByPenstock() && errors.Is(err, store.ErrUnsupported) {
		return nil, err, nil
	}
	return d, nil, err
}

// LocatePacked opens an HDF5 file whose records are chunked or compressed. It returns nil if package mmapds does not
// read them.
func (p *Target) LocatePacked() *store.Dataset {
	d, err := store.OpenHDF5(p.Path, store.OpenOptions{Packed: true})
	if err != nil {
		return nil
	}
	return d
}

// WithAdvice adds to an error of a corrupt flat dataset the command that lists everything that is corrupt.
func (p *Target) WithAdvice(err error) error {
	if p.Flat && errors.Is(err, store.ErrCorrupt) {
		return fmt.Errorf("%w (all that is wrong: %s)", err, shell.On("inspect verify", p.Path))
	}
	return err
}

// Innermost returns the text of err without package, path and ErrUnsupported.
func Innermost(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	// the report prints the command in full
	text, _, _ := strings.Cut(forFlags(err.Error()), "; make a file that can be: ")
	return strings.TrimSuffix(text, ": "+store.ErrUnsupported.Error())
}

// forFlags rewrites a message of package store, which names Go and Python options, in terms of the command's flags.
func forFlags(text string) string {
	return strings.ReplaceAll(text, "belong together (fields=[...] in Python, mmapds.WithFields in Go)",
		"belong together by --field")
}

// ForFlags replaces names of the Go API in the text of err by flags of the command.
func ForFlags(err error) error { return worded{err} }

type worded struct{ error }

func (w worded) Error() string {
	return strings.TrimSuffix(forFlags(w.error.Error()), ": "+store.ErrUnsupported.Error())
}
func (w worded) Unwrap() error { return w.error }

// UnreadText returns the text of an error of package chunk without the dataset's name.
func UnreadText(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return strings.TrimSuffix(err.Error(), ": "+meta.ErrUnsupported.Error())
}
