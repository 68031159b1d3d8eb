// Package filter computes the filters of HDF5, Zarr and blosc, as functions over bytes: shuffle,
// transposed bits, the order of bytes, numbers of any number of bits, and the checksums of
// fletcher32 and of zlib streams.
//
//	filter.Unshuffle(dst, stored, 4) // elements of 4 bytes
//	sum := filter.Fletcher32(stored)
//
// Functions may be called from any goroutine and allocate nothing. Slices of the wrong length
// panic. On amd64 with AVX2 they are in assembly, which -tags purego leaves out.
package filter
