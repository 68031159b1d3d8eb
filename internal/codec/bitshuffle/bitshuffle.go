// Package bitshuffle undoes the bitshuffle transform of HDF5's filter 32008, of blosc and of Zarr: the
// first bit of all elements comes first, then the second bit of all, and so on.
//
//	bitshuffle.Decode(dst, stored, 4) // elements of 4 bytes
//
// The layout is that of bshuf_trans_bit_elem of https://github.com/kiyo-masui/bitshuffle.
package bitshuffle

import (
	"encoding/binary"

	"github.com/penstock/penstock/internal/hdf5/filter"
)

// Elements are decoded in tiles that stay in the processor's first cache.
const (
	tileBytes   = 8 << 10
	largestElem = tileBytes / 64
)

// Decode undoes bitshuffle of elements of size bytes. The elements that are left over from groups of eight,
// and bytes that make no whole element, stay where they are, at the end. dst is as long as src, and does
// not overlap it. It allocates nothing and may be called from any goroutine.
//
//	for i := range n { for j := range 8 * size { bit j of element i = bit i of src[j*n/8:] } }
func Decode(dst, src []byte, size int) {
	dst = dst[:len(src)]
	n := len(src) / size &^ 7
	switch {
	case n == 0:
	case size > largestElem:
		decodeLarge(dst, src, n, size)
	default:
		decodeTiles(dst, src, n, size)
	}
	copy(dst[n*size:], src[n*size:])
}

// decodeTiles makes n elements, a tile at a time: bits to bytes, then bytes to elements.
func decodeTiles(dst, src []byte, n, size int) {
	var rows, planes [tileBytes]byte
	row, most := n/8, tileBytes/size&^63
	for first := 0; first < n; first += most {
		m := min(most, n-first)
		tile, bytes := dst[first*size:(first+m)*size], planes[:m*size]
		if size == 1 {
			bytes = tile
		}
		for j := range size {
			transpose(rows[:m], src[j*n+first/8:], row, m/8)
			filter.Unshuffle(bytes[j*m:(j+1)*m], rows[:m], 8)
		}
		if size > 1 {
			filter.Unshuffle(tile, bytes, size)
		}
	}
}

// transpose makes of eight rows of n bytes, which are stride apart and have a bit of eight elements in each
// byte, eight rows of which row k has the bytes of the elements k, 8+k, 16+k, and so on.
func transpose(dst, src []byte, stride, n int) {
	i := 0
	for ; i+8 <= n; i += 8 {
		var x [8]uint64
		for k := range x {
			x[k] = binary.LittleEndian.Uint64(src[k*stride+i:])
		}
		transposeWords(&x)
		for k := range x {
			binary.LittleEndian.PutUint64(dst[k*n+i:], x[k])
		}
	}
	for ; i < n; i++ {
		var x [8]uint64
		for k := range x {
			x[k] = uint64(src[k*stride+i])
		}
		transposeWords(&x)
		for k := range x {
			dst[k*n+i] = byte(x[k])
		}
	}
}

// transposeWords transposes the 8 by 8 bits that the same byte of eight words has.
func transposeWords(x *[8]uint64) {
	const ones, twos, fours = 0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f
	a0, a1 := swap(x[0], x[1], 1, ones)
	a2, a3 := swap(x[2], x[3], 1, ones)
	a4, a5 := swap(x[4], x[5], 1, ones)
	a6, a7 := swap(x[6], x[7], 1, ones)
	a0, a2 = swap(a0, a2, 2, twos)
	a1, a3 = swap(a1, a3, 2, twos)
	a4, a6 = swap(a4, a6, 2, twos)
	a5, a7 = swap(a5, a7, 2, twos)
	x[0], x[4] = swap(a0, a4, 4, fours)
	x[1], x[5] = swap(a1, a5, 4, fours)
	x[2], x[6] = swap(a2, a6, 4, fours)
	x[3], x[7] = swap(a3, a7, 4, fours)
}

// swap exchanges the bits of a that are n above those of mask with the bits of b that are in mask.
func swap(a, b uint64, n int, mask uint64) (uint64, uint64) {
	t := (a>>(n&63) ^ b) & mask
	return a ^ t<<(n&63), b ^ t
}

// decodeLarge makes n elements of any size, bit by bit.
func decodeLarge(dst, src []byte, n, size int) {
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
