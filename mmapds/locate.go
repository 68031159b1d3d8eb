package mmapds

import (
	"fmt"
	"os"
	"slices"

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
	if !info.IsDir() {
		return locateHDF5(path, opts.Fields)
	}
	d, err := store.OpenFlat(path)
	if err != nil || opts.Fields == nil {
		return d, err
	}
	return selectFields(d, opts.Fields)
}

// selectFields returns d with only the named fields.
func selectFields(d *store.Dataset, names []string) (*store.Dataset, error) {
	out := *d
	out.Schema, out.Extents = store.Schema{}, nil
	for k, name := range names {
		i := d.Schema.Index(name)
		if i < 0 {
			return nil, fmt.Errorf("mmapds: open %q: it has no field %q", d.Path, name)
		}
		if slices.Contains(names[:k], name) {
			return nil, fmt.Errorf("mmapds: open %q: field %q is asked for twice", d.Path, name)
		}
		out.Schema.Fields = append(out.Schema.Fields, d.Schema.Fields[i])
		out.Extents = append(out.Extents, d.Extents[i])
	}
	if len(out.Extents) == 0 {
		return nil, fmt.Errorf("mmapds: open %q: no fields asked for", d.Path)
	}
	return &out, nil
}
