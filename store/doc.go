// Package store says what a dataset is: its Schema and Manifest, the files that it has, and
// what a Writer takes.
//
// A dataset holds n records; each record has the same fields, and each field has one type
// and shape. Records of a field are back to back, so records [a, b) of a field are, byte
// for byte, the array of shape (b-a, ...). A ragged field, whose records have lengths of
// their own, is two such arrays: its values and its offsets. The layout is specified in
// docs/format.md.
//
// Writing: a Writer (Create in packages flat, hdf5 and zarr) takes records in order and
// publishes the dataset with Commit, so that it is either whole or not there at all. Close
// without Commit removes every trace, or with a Journal keeps the build, so that a later
// build can continue it. Reading: Open checks the manifest and every header against the
// true file sizes, and package mmapds maps the records.
package store
