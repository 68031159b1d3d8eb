package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/shell"
	"github.com/penstock/penstock/store"
)

// manifestPath is where an HDF5 file of penstock has its manifest: see package store/hdf5.
const manifestPath = "/penstock/manifest"

// place is a path that was looked at: a folder, or an open HDF5 file.
type place struct {
	path string
	flat bool
	file *os.File   // of HDF5
	meta *meta.File // of HDF5
}

// look finds out what is at path. The caller closes the place.
func look(path string) (*place, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such file or folder", path)
	case err != nil:
		return nil, err
	case info.IsDir() && !store.IsFlat(path):
		return nil, fmt.Errorf("%s: no %s in it, so it is no dataset (a folder of images becomes one by: %s)", path, store.ManifestName, cmp.Or(shell.Command("preprocess", path, "OUT"), "preprocess FOLDER OUT"))
	case info.IsDir():
		return &place{path: path, flat: true}, nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: neither a folder nor a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	meta, err := meta.Open(f, info.Size())
	if err != nil {
		f.Close()
		return nil, refused(path, err)
	}
	return &place{path: path, file: f, meta: meta}, nil
}

// refused says what is wrong with a file that is no readable HDF5 file.
func refused(path string, err error) error {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, meta.ErrNotHDF5) && store.IsFlat(dir):
		return fmt.Errorf("%s is a file of the dataset %s: inspect that folder", path, dir)
	case errors.Is(err, meta.ErrNotHDF5):
		return fmt.Errorf("%s: neither a dataset folder nor an HDF5 file", path)
	case errors.Is(err, meta.ErrCorrupt):
		return fmt.Errorf("%s: damaged or cut short: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (p *place) close() {
	if p.file != nil {
		p.file.Close()
	}
}

// ours reports whether penstock made what is there, as far as can be seen from outside.
func (p *place) ours() bool {
	if p.flat {
		return true
	}
	_, err := p.meta.Dataset(manifestPath)
	return err == nil
}

// locate finds the records.
func (p *place) locate() (*store.Dataset, error) { return store.Open(p.path, store.OpenOptions{}) }

// locateOrTree is locate, but an HDF5 file of other origin may have nothing to locate: then
// the Dataset is nil and why says what keeps it from that.
func (p *place) locateOrTree() (d *store.Dataset, why, err error) {
	d, err = p.locate()
	if err != nil && !p.ours() && errors.Is(err, store.ErrUnsupported) {
		return nil, err, nil
	}
	return d, nil, err
}

// locatePacked finds the records of an HDF5 file that package mmapds opens, but not in place;
// nil if it does not.
func (p *place) locatePacked() *store.Dataset {
	d, err := store.OpenHDF5(p.path, store.OpenOptions{Packed: true})
	if err != nil {
		return nil
	}
	return d
}

// withAdvice adds to an error of a damaged flat dataset how to learn about all of its damages.
func (p *place) withAdvice(err error) error {
	if p.flat && errors.Is(err, store.ErrCorrupt) {
		return fmt.Errorf("%w (all that is wrong: %s)", err, cmp.Or(shell.Command("inspect verify", p.path), "inspect verify"))
	}
	return err
}

// innermost returns what err says behind the name of the package and the path, and before
// the mark that it is about something unsupported.
func innermost(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	text, _, _ := strings.Cut(forFlags(err.Error()), "; make a file that can be: ") // the report prints the command in full
	return strings.TrimSuffix(text, ": "+store.ErrUnsupported.Error())
}

// forFlags words for users of commands what package store says to those of its Go API.
func forFlags(text string) string {
	return strings.ReplaceAll(text, "name those that belong together (mmapds.WithFields)", "name those that belong together by --field")
}

// worded is an error whose text is forFlags.
type worded struct{ error }

func (w worded) Error() string { return forFlags(w.error.Error()) }
func (w worded) Unwrap() error { return w.error }
