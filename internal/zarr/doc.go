// Package zarr reads Zarr of the versions 2 and 3: groups and arrays of numbers in folders, zip files and
// wherever a [Files] leads.
//
//	g, err := zarr.Open(vfs.Folder("x.zarr"))
//	r, err := g.Arrays[0].Reader(chunk.Options{Pool: pool})
//	err = r.Records(ctx, dst, 0, 256) // records [0, 256), which are steps along the first axis
//
// The specifications are https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html and
// https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html. Package chunk reads the chunks, as it does for HDF5 files:
// each chunk once a call, by several goroutines. Files are untrusted: any bytes give an error or values, in memory that
// is bounded by the size of the files.
package zarr
