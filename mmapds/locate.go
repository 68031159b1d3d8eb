package mmapds

import (
	"fmt"
	"os"

	"github.com/penstock/penstock/store"
)

// Locate finds out what the dataset at path is and where its records lie, without mapping
// anything.
func Locate(path string) (*store.Dataset, error) { return LocateWith(path, Options{}) }

// LocateWith is Locate with options.
func LocateWith(path string, opts Options) (*store.Dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("mmapds: open %w", err)
	}
	d, err := open(path, info.IsDir(), opts)
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

func open(path string, folder bool, opts Options) (*store.Dataset, error) {
	if folder {
		return store.OpenFlat(path)
	}
	return store.OpenHDF5(path, opts.Fields)
}
