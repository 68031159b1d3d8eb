//go:build (amd64 || arm64) && !purego

package kernel

func standardizeFast(x []float64, mean, std float64) int {
	n := eights(len(x))
	if n > 0 {
		standardize64(&x[0], n, mean, std)
	}
	return n
}

func scaleFast(x []float64, factor, offset float64) int {
	n := eights(len(x))
	if n > 0 {
		scale64(&x[0], n, factor, offset)
	}
	return n
}

func clipFast(x []float64, lo, hi float64) int {
	n := eights(len(x))
	if n > 0 {
		clip64(&x[0], n, lo, hi)
	}
	return n
}

func fromBytesFast(dst []float64, src []byte) int {
	n := eights(len(dst))
	if n > 0 {
		widen8(&dst[0], &src[0], n)
	}
	return n
}

func fromF32Fast(dst []float64, src []byte) int {
	n := eights(len(dst))
	if n > 0 {
		widen32(&dst[0], &src[0], n)
	}
	return n
}

func toF32Fast(dst []byte, src []float64) int {
	n := eights(len(src))
	if n > 0 {
		narrow32(&dst[0], &src[0], n)
	}
	return n
}

func roundF32Fast(x []float64) int {
	n := eights(len(x))
	if n > 0 {
		round32(&x[0], n)
	}
	return n
}
