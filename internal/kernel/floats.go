package kernel

import "github.com/penstock/penstock/tensor"

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
	return l.total(), positive(low), positive(high)
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

// Piece is how many numbers PiecesF32 sums up at a time.
const Piece = 1024

// PiecesF32 sums up x, which is one or more whole pieces of that many numbers: sums gets SumF32 of
// each, squares SquaresF32 around the mean that follows from the sum. It returns the least and the
// greatest number of x, which are undefined if a sum is not finite.
func PiecesF32(sums, squares []float64, x []float32) (low, high float32) {
	if len(x) == 0 || len(x) != Piece*len(sums) || len(x) != Piece*len(squares) {
		panic("kernel: PiecesF32 of something else than whole pieces")
	}
	if low, high, ok := piecesF32Fast(sums, squares, x); ok {
		return positive(low), positive(high)
	}
	low, high = x[0], x[0]
	for i := range sums {
		p := x[i*Piece:][:Piece]
		sum, least, greatest := SumF32(p)
		sums[i], squares[i] = sum, SquaresF32(p, sum/Piece)
		low, high = min(low, least), max(high, greatest)
	}
	return positive(low), positive(high)
}

// positive turns -0 into 0.
func positive(x float32) float32 {
	if x == 0 {
		return 0
	}
	return x
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
