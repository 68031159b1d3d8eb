//go:build !purego

package kernel

// sixteenPixels returns how many of n pixels the kernels can do, which take 16 at a time.
func sixteenPixels(n int) int {
	if !useKernels || n < 16 {
		return 0
	}
	return n
}

func planesFast(r, g, b, src []byte, step int) int {
	n := sixteenPixels(wholePixels(len(r), src, step))
	switch {
	case n == 0:
	case step == 3:
		planes3(&r[0], &g[0], &b[0], &src[0], n)
	default:
		planes4(&r[0], &g[0], &b[0], &src[0], n)
	}
	return n
}

func interleaveFast(dst, r, g, b []byte) int {
	n := sixteenPixels(len(r))
	if n > 0 {
		interleave3(&dst[0], &r[0], &g[0], &b[0], n)
	}
	return n
}

func packFast(dst, src []byte, step int) int {
	n := sixteenPixels(wholePixels(len(dst)/3, src, step))
	if step != 4 || n == 0 {
		return 0
	}
	pack4(&dst[0], &src[0], n)
	return n
}

func reverseFast(dst, src []byte) int {
	n := sixteenPixels(len(src))
	if n > 0 {
		reverseRows16(&dst[0], &src[0], n, n, 1)
	}
	return n
}

func reverseRowsFast(dst, src []byte, width, stride, rows int) int {
	if rows == 0 || sixteenPixels(width) == 0 {
		return 0
	}
	reverseRows16(&dst[0], &src[0], width, stride, rows)
	return rows
}

func reverse3Fast(dst, src []byte, pixels int) int {
	n := sixteenPixels(pixels)
	if n > 0 {
		reverse3(&dst[3*n-1], &src[0], n)
	}
	return n
}

func grayFast(dst, src []byte, step int) int {
	n := sixteenPixels(wholePixels(len(dst), src, step))
	switch {
	case n == 0:
	case step == 3:
		gray3(&dst[0], &src[0], n)
	default:
		gray4(&dst[0], &src[0], n)
	}
	return n
}
