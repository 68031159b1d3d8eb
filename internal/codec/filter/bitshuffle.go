package filter

import ()

// Elements are decoded in tiles that stay in the CPU's L1 cache.
const (
	tileBytes   = 8 << 10
	largestElem = tileBytes / 64
)

// Unbitshuffle undoes the bitshuffle transform of HDF5's filter 32008, of blosc and of Zarr for elements of size bytes:
// the first bit of all elements comes first, then the second bit of all, and so on, as bshuf_trans_bit_elem of
// https://github.com/kiyo-masui/bitshuffle stores them. The elements that are left over from groups of eight,
// and bytes that make no whole element, stay where they are, at the end. dst is as long as src, and does
// not overlap it. It allocates nothing and may be called from any goroutine.
//
//	for i := range n { for j := range 8 * size { bit j of element i = bit i of src[j*n/8:] } }
func Unbitshuffle(dst, src []byte, size int) {
	dst = dst[:len(src)]
	n := len(src) / size &^ 7
	switch {
	case n == 0:
	case size > largestElem:
		unbitshuffleLarge(dst, src, n, size)
	default:
		unbitshuffleTiles(dst, src, n, size)
	}
	copy(dst[n*size:], src[n*size:])
}

// unbitshuffleTiles makes n elements, one tile at a time, so that its intermediate bytes stay in the cache. Eight rows
// of bits become squares of 8 by 8 bits, squares become bytes, and bytes become elements.
func unbitshuffleTiles(dst, src []byte, n, size int) {
	var planes [tileBytes]byte
	most := tileBytes / size &^ 63
	for first := 0; first < n; first += most {
		m := min(most, n-first)
		tile, bytes := dst[first*size:(first+m)*size], planes[:m*size]
		if size == 1 {
			bytes = tile
		}
		for j := range size {
			plane := bytes[j*m : (j+1)*m]
			if m == n {
				Unshuffle(plane, src[j*n:(j+1)*n], 8)
			} else {
				squares(plane, src[j*n+first/8:], n/8)
			}
		}
		TransposeBits(bytes)
		if size > 1 {
			Unshuffle(tile, bytes, size)
		}
	}
}

// squares makes squares of bits from a part of eight rows, which are stride bytes apart.
func squares(dst, src []byte, stride int) {
	var rows [tileBytes]byte
	n := len(dst) / 8
	for k := range 8 {
		copy(rows[k*n:(k+1)*n], src[k*stride:])
	}
	Unshuffle(dst, rows[:8*n], 8)
}

// unbitshuffleLarge makes n elements of any size, bit by bit.
func unbitshuffleLarge(dst, src []byte, n, size int) {
	for j := range size {
		for i := range n {
			var x byte
			for k := range 8 {
				x |= src[(8*j+k)*(n/8)+i/8] >> (i % 8) & 1 << k
			}
			dst[i*size+j] = x
		}
	}
}
