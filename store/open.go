package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
)

// OpenOptions configures Open. The zero value is usable.
type OpenOptions struct {
	// Fields opens only the named fields, in this order; nil means all fields. In an HDF5 file that penstock did not
	// write, a field's name is the dataset's path, such as "train/images".
	Fields []string

	// Split opens only the records of the named split, numbered from 0; empty means all records.
	Split string

	// Generation opens the generation of that number; 0 is the generation that the path names, or the newest.
	Generation int

	// Packed says that the caller can decode chunks: data of Zarr, or of an HDF5 file that penstock did not write, may
	// be chunked, compressed or big endian. Without Packed such data is ErrUnsupported.
	Packed bool
}

// Open finds out what the dataset at path is, a flat folder, an HDF5 file, a folder of Zarr or a .npy file, and where
// its records are. It reads metadata only, and maps nothing. The path of a dataset may end with a
// generation: ds@3, or ds@TAG.
//
// The errors are the same as in OpenFlat, OpenHDF5, OpenZarr and OpenNPY.
func Open(path string, opts OpenOptions) (*Dataset, error) {
	path, generation, err := opts.at(path)
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		if isURL(path) {
			err = notLocal()
		}
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	var d *Dataset
	switch {
	case generation != "" && (isNPY(path) || info.IsDir() && !layout.KeepsGenerations(path) && zarr.Is(vfs.Folder(path))):
		return nil, fmt.Errorf("store: open: %w", NoGenerations(path))
	case info.IsDir() && !layout.IsFlat(path) && (layout.IsZarr(path) || zarr.Is(vfs.Folder(path))):
		d, err = openZarr(path, generation, opts)
	case info.IsDir():
		d, err = openFlat(path, generation)
	case isNPY(path):
		d, err = OpenNPY(path)
	default:
		d, err = openHDF5(path, generation, opts)
	}
	if err != nil {
		return nil, err
	}
	if opts.Fields != nil {
		d, err = d.Select(opts.Fields)
	}
	if err == nil && opts.Split != "" {
		d, err = d.inSplit(opts.Split)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return d, nil
}

// isURL reports whether a path is the URL of an object, such as s3://bucket/ds.
func isURL(path string) bool { return urlStart.MatchString(path) }

var urlStart = regexp.MustCompile(`^[a-z][a-z0-9]*://`)

// notLocal returns the error for a URL where a dataset of this machine is asked for. It is ErrUnsupported.
func notLocal() error {
	return fmt.Errorf("it is a URL, and not a path of this machine: mirror.Open reads a dataset in a bucket, and "+
		"edit.InBucket changes it, as commands do, such as: %s: %w", shell.Penstock("inspect", "URL"), ErrUnsupported)
}

// at splits a path into the path of the dataset and the generation, which may also come from the options; "" is the
// newest. Path and options that name different generations are an error.
func (o OpenOptions) at(path string) (folder, generation string, err error) {
	folder, generation, named := layout.SplitGeneration(path)
	switch {
	case o.Generation < 0:
		return path, "", fmt.Errorf("generation %d; the first is 1", o.Generation)
	case o.Generation == 0:
		return folder, generation, nil
	case named && generation != strconv.Itoa(o.Generation):
		return path, "", fmt.Errorf("its path says generation %s, and the option Generation says %d", generation,
			o.Generation)
	}
	return folder, strconv.Itoa(o.Generation), nil
}

func init() {
	layout.Of = func(dataset any) *layout.Dataset { return &dataset.(*Dataset).layout }
	layout.OpenFlat = func(path string, manifest []byte) (any, error) { return readFlat(path, manifest) }
	layout.OpenZarr = func(path string, files zarr.Files, manifest []byte) (any, error) {
		return readZarr(path, files, manifest)
	}
	layout.OpenHDF5 = func(path string, file *meta.File, fields []string, filters layout.Filters) (any, error) {
		// with an error, readHDF5 returns a nil *Dataset
		return readHDF5(path, file, OpenOptions{Fields: fields, Packed: filters == layout.Undone})
	}
}
