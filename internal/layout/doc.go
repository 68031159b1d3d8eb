// Package layout says where the bytes of a dataset are: columns that consist of extents, the index of ragged fields,
// and the checksums of blocks. Packages store, mmapds, remote/mirror and the commands share it; users of store do not
// need it.
//
// A field is one [Column], or for a ragged field two: the rows of all records, and the offsets at which records begin.
// A column is a list of [Extent], each a run of rows in one file: a shard of a flat dataset, a dataset of an HDF5 file,
// a chunk of Zarr. All containers come down to extents, so readers of mapped, fetched and plain files have one form to
// read. Rows are cut into blocks of at least one record, and each block has a CRC32C.
//
// It also has the names that files and generations have in a folder. docs/format.md specifies them.
package layout
