//go:build (amd64 || arm64) && !purego

package jpeg

// The Fast functions do as many elements as they can and return how many that are: all or
// none. They trust their callers for the lengths of all slices but the first.

// The Fast functions below do all of their elements and return how many these are, or do none and
// return 0 (idctPairFast: false). A row that is shorter than a vector block is left to the loop in
// Go. They trust the loops in Go, their only callers, for the lengths of all slices but the first.
func idctPairFast(dst []byte, stride int, coefs *[128]int16, quant *[64]uint16) bool {
	if !useKernels {
		return false
	}
	_ = dst[7*stride+15]
	idctPairKernel(&dst[0], stride, coefs, quant)
	return true
}

func sumRowsFast(dst []uint16, near, far []byte) int {
	if !useKernels || len(dst) < 16 {
		return 0
	}
	sumRowsKernel(&dst[0], &near[0], &far[0], len(dst))
	return len(dst)
}

func doubleColumnsFast(dst []byte, s []uint16, even, odd uint16) int {
	n := len(dst) / 2
	if !useKernels || n < 16 {
		return 0
	}
	doubleColumnsKernel(&dst[0], &s[0], n, even, odd)
	return n
}

func yccToRGBXFast(dst, y, cb, cr []byte) int {
	if !useKernels || len(y) < 16 {
		return 0
	}
	yccToRGBXKernel(&dst[0], &y[0], &cb[0], &cr[0], len(y))
	return len(y)
}
