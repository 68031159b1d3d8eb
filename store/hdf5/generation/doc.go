// Package generation changes datasets in HDF5 files without rewriting them. A change appends to the file: the arrays of
// new columns, the headers of all objects, the manifest, and where the earlier generations begin. When that is on disk,
// the superblock is replaced by one that leads to it, in one write of 48 bytes at the begin of the file. That is the
// commit: before it the file is as it was, followed by bytes that nothing leads to, which the next change overwrites.
//
// No byte of an earlier generation but the superblock ever changes, so that programs that have the file open or mapped
// keep what they opened. An earlier generation is the file with its superblock prepended: see
// layout.OpenHDF5Generation.
package generation
