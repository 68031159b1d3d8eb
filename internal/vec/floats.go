package vec

import "github.com/penstock/penstock/tensor"

// lanes are sums of every sixteenth number: as many as the processor can add to without
// waiting for the addition before.
type lanes [16]float64

// total adds the lanes in halves.
func (l *lanes) total() float64 {
	for n := len(l) / 2; n > 0; n /= 2 {
		for i := range n {
			l[i] += l[i+n]
		}
	}
	return l[0]
}

// SumF32 returns the sum of x in lanes of float64, its least and its greatest number, where
// 0 stands for -0 too. x is not empty. The sum is finite if all of x is; otherwise it is
// not, and the limits mean nothing.
func SumF32(x []float32) (sum float64, low, high float32) {
	var l lanes
	low, high = x[0], x[0]
	for i := sumF32Fast(&l, x, &low, &high); i < len(x); i++ {
		l[i%len(l)] += float64(x[i])
		if x[i] < low {
			low = x[i]
		}
		if x[i] > high {
			high = x[i]
		}
	}
	if low == 0 {
		low = 0
	}
	if high == 0 {
		high = 0
	}
	return l.total(), low, high
}

// SquaresF32 returns the sum of (x[i]-mean)^2, in lanes of float64.
func SquaresF32(x []float32, mean float64) float64 {
	var l lanes
	for i := squaresF32Fast(&l, x, mean); i < len(x); i++ {
		d := float64(x[i]) - mean
		l[i%len(l)] += float64(d * d)
	}
	return l.total()
}

// WidenF16 is dst[i] = src[i]; src is at least as long as dst.
func WidenF16(dst []float32, src []tensor.Half) {
	src = src[:len(dst)]
	for i := widenF16Fast(dst, src); i < len(dst); i++ {
		dst[i] = src[i].Float32()
	}
}

// WidenBF16 is dst[i] = src[i]; src is at least as long as dst.
func WidenBF16(dst []float32, src []tensor.Brain) {
	src = src[:len(dst)]
	for i := widenBF16Fast(dst, src); i < len(dst); i++ {
		dst[i] = src[i].Float32()
	}
}
