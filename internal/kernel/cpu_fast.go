//go:build (amd64 || arm64) && !purego

package kernel

// eights returns how many of n numbers the kernels can do.
func eights(n int) int {
	if !useKernels {
		return 0
	}
	return n &^ 7
}

// sixteens returns how many of n numbers the kernels for lanes can do.
func sixteens(n int) int {
	if !useKernels {
		return 0
	}
	return n &^ 15
}

// wholePixels returns how many of n pixels can be read with step bytes each: the last may
// end with its third byte.
func wholePixels(n int, src []byte, step int) int {
	if step > 4 {
		return 0
	}
	return min(n, cap(src)/step)
}

// pixelByte returns where in its half of a register channel c of pixel i (0 to 7) is.
func pixelByte(step, i, c int) byte {
	if i < 4 {
		return byte(i*step + c)
	}
	return byte(16 - (8-i)*step + c)
}
