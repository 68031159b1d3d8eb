//go:build !purego

package kernel

// grayMasks arrange red and green, and green and blue, as pairs.
var grayMasks = [5]*[2][32]byte{3: newGrayMasks(3), 4: newGrayMasks(4)}

func newGrayMasks(step int) *[2][32]byte {
	m := new([2][32]byte)
	for i := range m {
		for j := range m[i] {
			m[i][j] = 0x80
			if j%2 == 0 {
				m[i][j] = pixelByte(step, j/4, i+j/2%2)
			}
		}
	}
	return m
}

// planeMasks gather 4 reds, 4 greens and 4 blues of 16 bytes that begin with, or end with,
// 4 pixels.
var planeMasks = [5]*[2][32]byte{3: newPlaneMasks(3), 4: newPlaneMasks(4)}

func newPlaneMasks(step int) *[2][32]byte {
	m := new([2][32]byte)
	for i := range m {
		for j := range m[i] {
			m[i][j] = 0x80
			if lane := j % 16; lane < 12 {
				m[i][j] = pixelByte(step, 4*i+lane%4, lane/4)
			}
		}
	}
	return m
}

func planesFast(r, g, b, src []byte, step int) int {
	n := wholePixels(len(r), src, step)
	if !useKernels || n < 32 {
		return 0
	}
	planes8(&r[0], &g[0], &b[0], &src[0], n, step, planeMasks[step])
	return n
}

func interleaveFast(dst, r, g, b []byte) int {
	n := (len(r) - 2) &^ 15 // two more pixels take the bytes written beyond
	if !useKernels || n <= 0 {
		return 0
	}
	interleave3(&dst[0], &r[0], &g[0], &b[0], n)
	return n
}

func packFast(dst, src []byte, step int) int {
	n := wholePixels(len(dst)/3, src, step)
	if !useKernels || step != 4 || n < 8 {
		return 0
	}
	pack4(&dst[0], &src[0], n)
	return n
}

func reverseFast(dst, src []byte) int {
	if !useKernels || len(src) < 32 {
		return 0
	}
	reverse1(&dst[0], &src[0], len(src))
	return len(src)
}

func reverseRowsFast(dst, src []byte, width, stride, rows int) int {
	switch {
	case !useKernels || rows == 0 || width < 16:
		return 0
	case width < 32:
		reverseRows16(&dst[0], &src[0], width, stride, rows)
	default:
		reverseRows32(&dst[0], &src[0], width, stride, rows)
	}
	return rows
}

func reverse3Fast(dst, src []byte, pixels int) int {
	n := (pixels - 1) / 5 * 5 // another pixel takes the byte written beyond
	if !useKernels || n <= 0 {
		return 0
	}
	reverse3(&dst[3*pixels-1], &src[0], n)
	return n
}

func grayFast(dst, src []byte, step int) int {
	n := wholePixels(len(dst), src, step)
	if !useKernels || n < 8 {
		return 0
	}
	gray8(&dst[0], &src[0], n, step, grayMasks[step])
	return n
}
