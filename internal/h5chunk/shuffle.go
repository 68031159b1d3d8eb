package h5chunk

import (
	"encoding/binary"
	"math/bits"
)

// unshuffle undoes HDF5's shuffle of elements of size bytes: src holds the first byte of all
// elements, then the second byte of all, and so on. Bytes that make no whole element stay
// where they are, at the end.
//
//	for i := range n { for j := range size { dst[i*size+j] = src[j*n+i] } }
func unshuffle(dst, src []byte, size int) {
	n := len(src) / size
	if n == 0 { // size, which a file can give as anything, is no reason to loop
		copy(dst, src)
		return
	}
	switch size {
	case 2:
		unshuffle2(dst, src[:n], src[n:2*n])
	case 4:
		unshuffle4(dst, src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n])
	case 8:
		unshuffle8(dst, src, n)
	default:
		for j := range size {
			for i, x := range src[j*n : (j+1)*n] {
				dst[i*size+j] = x
			}
		}
	}
	copy(dst[n*size:], src[n*size:])
}

// spread2 puts the low four bytes of x at the even bytes of the result.
func spread2(x uint64) uint64 {
	x = (x | x<<16) & 0x0000ffff0000ffff
	return (x | x<<8) & 0x00ff00ff00ff00ff
}

func unshuffle2(dst, a, b []byte) {
	i := 0
	for ; i+8 <= len(a) && i+8 <= len(b); i += 8 {
		x, y := binary.LittleEndian.Uint64(a[i:]), binary.LittleEndian.Uint64(b[i:])
		d := dst[2*i : 2*i+16 : 2*i+16]
		binary.LittleEndian.PutUint64(d, spread2(x&0xffffffff)|spread2(y&0xffffffff)<<8)
		binary.LittleEndian.PutUint64(d[8:], spread2(x>>32)|spread2(y>>32)<<8)
	}
	for ; i < len(a); i++ {
		dst[2*i], dst[2*i+1] = a[i], b[i]
	}
}

func unshuffle4(dst, a, b, c, d []byte) {
	n := len(a)
	b, c, d = b[:n], c[:n], d[:n]
	dst = dst[:4*n]
	for i := range n {
		v := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], v)
	}
}

func unshuffle8(dst, src []byte, n int) {
	a, b, c, d := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
	e, f, g, h := src[4*n:5*n], src[5*n:6*n], src[6*n:7*n], src[7*n:8*n]
	dst = dst[:8*n]
	for i := range n {
		low := uint64(a[i]) | uint64(b[i])<<8 | uint64(c[i])<<16 | uint64(d[i])<<24
		high := uint64(e[i]) | uint64(f[i])<<8 | uint64(g[i])<<16 | uint64(h[i])<<24
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], low|high<<32)
	}
}

// swapBytes turns the bytes of every element of size bytes around.
func swapBytes(b []byte, size int) {
	switch size {
	case 2:
		for ; len(b) >= 2; b = b[2:] {
			b[0], b[1] = b[1], b[0]
		}
	case 4:
		for ; len(b) >= 4; b = b[4:] {
			binary.LittleEndian.PutUint32(b, bits.ReverseBytes32(binary.LittleEndian.Uint32(b)))
		}
	case 8:
		for ; len(b) >= 8; b = b[8:] {
			binary.LittleEndian.PutUint64(b, bits.ReverseBytes64(binary.LittleEndian.Uint64(b)))
		}
	}
}
