// Package filter is what HDF5's filters compute, as functions over bytes: shuffle, and the
// checksums of fletcher32 and of the zlib streams that deflate makes. Packages chunk and encode
// undo and apply them to chunks.
//
//	filter.Unshuffle(dst, stored, 4) // elements of 4 bytes
//	sum := filter.Fletcher32(stored)
//
// Functions may be called from any goroutine and allocate nothing. Slices of the wrong length
// panic. On amd64 with AVX2 they are in assembly, which -tags purego leaves out.
package filter
