//go:build (amd64 || arm64) && !purego

package kernel

import "github.com/penstock/penstock/tensor"

func sumF32Fast(l *lanes, x []float32, low, high *float32) int {
	n := sixteens(len(x))
	if n > 0 {
		var limits [2][8]float32
		sum32((*[16]float64)(l), &limits, &x[0], n)
		for i := range limits[0] {
			*low, *high = min(*low, limits[0][i]), max(*high, limits[1][i])
		}
	}
	return n
}

func squaresF32Fast(l *lanes, x []float32, mean float64) int {
	n := sixteens(len(x))
	if n > 0 {
		squares32((*[16]float64)(l), &x[0], n, mean)
	}
	return n
}

func widenF16Fast(dst []float32, src []tensor.Half) int {
	n := eights(len(dst))
	if n > 0 {
		widenF16(&dst[0], (*uint16)(&src[0]), n)
	}
	return n
}

func widenBF16Fast(dst []float32, src []tensor.Brain) int {
	n := eights(len(dst))
	if n > 0 {
		widenBF16(&dst[0], (*uint16)(&src[0]), n)
	}
	return n
}
