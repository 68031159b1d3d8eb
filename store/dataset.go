package store

import "github.com/penstock/penstock/internal/layout"

// Dataset describes a dataset on disk, all of whose extents are known to be inside their files. It holds no open files
// and may be shared.
type Dataset struct {
	Path     string    // as it was opened
	Format   string    // "flat", "hdf5", "zarr" or "npy"
	Split    string    // the split that was chosen, if any
	Schema   Schema    //
	Records  int64     //
	Manifest *Manifest // of all records and fields; nil for a file that penstock did not write

	layout layout.Dataset // where the columns are
	names  *Dataset       // see SourceNames
}

// Bytes returns the size of all arrays.
func (d *Dataset) Bytes() int64 {
	n := int64(0)
	for _, c := range d.layout.Columns {
		n += c.Rows * int64(c.Spec.RecordBytes())
	}
	return n
}
