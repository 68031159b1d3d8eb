package filter

import "encoding/binary"

// Shuffle is HDF5's filter of elements of size bytes: the first byte of all comes first, then
// the second byte of all, and so on. Bytes that make no whole element stay where they are, at
// the end. dst is as long as src, and does not overlap it.
//
//	for i := range n { for j := range size { dst[j*n+i] = src[i*size+j] } }
func Shuffle(dst, src []byte, size int) {
	n := len(src) / size
	if n == 0 {
		copy(dst, src)
		return
	}
	for j := range size {
		plane := dst[j*n : (j+1)*n]
		for i, at := 0, j; i < len(plane); i, at = i+1, at+size {
			plane[i] = src[at]
		}
	}
	copy(dst[n*size:], src[n*size:])
}

// Unshuffle undoes HDF5's shuffle of elements of size bytes: src holds the first byte of all
// elements, then the second byte of all, and so on. Bytes that make no whole element stay
// where they are, at the end. dst is as long as src, and does not overlap it.
//
//	for i := range n { for j := range size { dst[i*size+j] = src[j*n+i] } }
func Unshuffle(dst, src []byte, size int) {
	n := len(src) / size
	if n == 0 { // size, which a file can give as anything, is no reason to loop
		copy(dst, src)
		return
	}
	if !unshuffleFast(dst, src, n, size) {
		unshuffleLoops(dst, src, n, size)
	}
	copy(dst[n*size:], src[n*size:])
}

// unshuffleLoops makes n elements.
func unshuffleLoops(dst, src []byte, n, size int) {
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
}

// spread2 puts the low four bytes of x at the even bytes of the result.
func spread2(x uint64) uint64 {
	x = (x | x<<16) & 0x0000ffff0000ffff
	return (x | x<<8) & 0x00ff00ff00ff00ff
}

// unshuffle2 interleaves two streams of bytes, eight of each at a time in 64-bit words.
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

// unshuffle4 interleaves four streams of bytes. Slices are cut to one length first, which removes the bounds checks
// from the loop.
func unshuffle4(dst, a, b, c, d []byte) {
	n := len(a)
	b, c, d = b[:n], c[:n], d[:n]
	dst = dst[:4*n]
	for i := range n {
		v := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], v)
	}
}

// unshuffle8 interleaves eight streams of bytes, as unshuffle4 does.
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
