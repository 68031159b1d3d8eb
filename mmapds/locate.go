package mmapds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/penstock/penstock/store"
)

// Locate finds out what the dataset at path is and where its records lie, without mapping
// anything.
func Locate(path string) (*store.Dataset, error) { return LocateWith(path, Options{}) }

// LocateWith is Locate with options.
//
// It finds records that lie in the file as they are. OpenWith also takes packed ones: see Packed
// data above.
func LocateWith(path string, opts Options) (*store.Dataset, error) {
	return locate(path, opts, store.OpenHDF5)
}

// locate is LocateWith with a function that opens HDF5 files.
func locate(path string, opts Options, hdf5 func(string, []string) (*store.Dataset, error)) (*store.Dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
	}
	d, err := open(path, info.IsDir(), opts, hdf5)
	if err != nil {
		return nil, err
	}
	if opts.Fields != nil {
		if d, err = d.Select(opts.Fields); err != nil {
			return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
		}
	}
	if opts.Split != "" {
		if d, err = d.InSplit(opts.Split); err != nil {
			return nil, fmt.Errorf("mmapds: open %q: %w", path, err)
		}
	}
	return d, nil
}

func open(path string, folder bool, opts Options, hdf5 func(string, []string) (*store.Dataset, error)) (*store.Dataset, error) {
	if folder {
		return store.OpenFlat(path)
	}
	return hdf5(path, opts.Fields)
}
