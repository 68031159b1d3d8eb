//go:build !purego

package kernel

func piecesF32Fast(sums, squares []float64, x []float32) (low, high float32, ok bool) {
	switch {
	case !useKernels:
		return 0, 0, false
	case useAVX512:
		low, high = pieces32x16(&sums[0], &squares[0], &x[0], len(sums))
	default:
		low, high = pieces32x8(&sums[0], &squares[0], &x[0], len(sums))
	}
	return low, high, true
}
