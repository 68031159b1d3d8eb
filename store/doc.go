// Package store keeps datasets as files: what a dataset is made of (Schema, Manifest), how
// the flat format lies on disk, and how a dataset is written so that it is either whole or
// not there at all.
//
// A dataset holds n records; each record has the same fields, and each field has one type
// and shape. Records of a field lie back to back, so records [a, b) of a field are, byte
// for byte, the array of shape (b-a, ...). A ragged field, whose records have lengths of
// their own, is two such arrays: its values and its offsets. The layout is specified in
// docs/format.md.
//
// Writing: a Writer (CreateFlat here, Create in store/hdf5) takes records in order and
// publishes the dataset with Commit; Close without Commit removes every trace, or with a
// Journal keeps the build for a later one to continue. Reading: OpenFlat and OpenHDF5 check the
// manifest and every header against the true file sizes and answer with Columns, which
// package mmapds maps.
package store
