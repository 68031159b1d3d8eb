package kernel

// Planes takes n = len(r) pixels of step bytes (3 or more) apart: r, g, b = channels 0, 1, 2.
// The three destinations have one length.
func Planes(r, g, b, src []byte, step int) {
	checkPixels(len(src), len(r), step, 3)
	if len(g) != len(r) || len(b) != len(r) {
		panic("kernel: Planes of several lengths")
	}
	for i := planesFast(r, g, b, src, step); i < len(r); i++ {
		p := src[i*step:][:3]
		r[i], g[i], b[i] = p[0], p[1], p[2]
	}
}

// Interleave is the inverse of Planes at step 3: dst = r0 g0 b0 r1 g1 b1 ...
func Interleave(dst, r, g, b []byte) {
	if len(dst) != 3*len(r) || len(g) != len(r) || len(b) != len(r) {
		panic("kernel: Interleave of several lengths")
	}
	for i := interleaveFast(dst, r, g, b); i < len(r); i++ {
		p := dst[i*3:][:3]
		p[0], p[1], p[2] = r[i], g[i], b[i]
	}
}

// Pack copies pixels without the bytes between them: dst has c (1 or 3) bytes a pixel, src
// step.
func Pack(dst, src []byte, step, c int) {
	n := len(dst) / c
	checkPixels(len(src), n, step, c)
	if step == c {
		copy(dst, src)
		return
	}
	if c == 1 {
		for i := range n {
			dst[i] = src[i*step]
		}
		return
	}
	for i := packFast(dst, src, step); i < n; i++ {
		d, s := dst[i*3:][:3], src[i*step:][:3]
		d[0], d[1], d[2] = s[0], s[1], s[2]
	}
}

// Reverse writes the pixels of src, c (1 or 3) bytes each, to dst in reverse order. dst and
// src have one length and do not overlap.
func Reverse(dst, src []byte, c int) {
	if len(dst) != len(src) {
		panic("kernel: Reverse of several lengths")
	}
	n := len(src) / c
	if c == 1 {
		for i := reverseFast(dst, src); i < n; i++ {
			dst[n-1-i] = src[i]
		}
		return
	}
	for i := reverse3Fast(dst, src, n); i < n; i++ {
		d, s := dst[(n-1-i)*3:][:3], src[i*3:][:3]
		d[0], d[1], d[2] = s[0], s[1], s[2]
	}
}

// ReverseRows reverses rows of width bytes each:
//
//	dst[y*width+width-1-x] = src[y*stride+x]
//
// for the len(dst)/width rows of dst. dst and src do not overlap.
func ReverseRows(dst, src []byte, width, stride int) {
	rows := len(dst) / width
	if len(dst) != rows*width {
		panic("kernel: ReverseRows of a part of a row")
	}
	checkPixels(len(src), rows, stride, width)
	for y := reverseRowsFast(dst, src, width, stride, rows); y < rows; y++ {
		Reverse(dst[y*width:(y+1)*width], src[y*stride:][:width], 1)
	}
}

// Spread is the gray row src as RGB: each byte three times.
func Spread(dst, src []byte, step int) {
	n := len(dst) / 3
	checkPixels(len(src), n, step, 1)
	for i := range n {
		v := src[i*step]
		d := dst[i*3:][:3]
		d[0], d[1], d[2] = v, v, v
	}
}

// Gray is Pillow's conversion of RGB pixels, step bytes apart, to L:
//
//	dst[i] = (19595*r + 38470*g + 7471*b + 1<<15) >> 16
func Gray(dst, src []byte, step int) {
	checkPixels(len(src), len(dst), step, 3)
	for i := grayFast(dst, src, step); i < len(dst); i++ {
		p := src[i*step:][:3]
		dst[i] = byte((19595*uint32(p[0]) + 38470*uint32(p[1]) + 7471*uint32(p[2]) + 1<<15) >> 16)
	}
}

// checkPixels panics unless bytes hold n pixels of c bytes, step apart.
func checkPixels(bytes, n, step, c int) {
	if step < c || (n > 0 && bytes < (n-1)*step+c) {
		panic("kernel: too few bytes for the pixels")
	}
}
