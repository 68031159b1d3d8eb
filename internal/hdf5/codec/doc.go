// Package codec undoes the filters of HDF5 datasets that other programs register or configure: szip and
// nbit of HDF5 itself, and bzip2, lz4, zstd, blosc, blosc2 and bitshuffle of its plugins.
//
//	c, err := codec.New(filter, chunkBytes)
//	data, err := c.Decode(dst, stored)
//
// Stored bytes are untrusted: any bytes give an error or data of at most len(dst) bytes.
package codec
