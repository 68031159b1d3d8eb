package kernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/tensor"
)

// float32s returns n finite numbers at both ends of guarded memory.
func float32s(t *testing.T, n int) [2][]float32 {
	t.Helper()
	out := floats[float32](t, n)
	for k := range out {
		for i := range out[k] {
			out[k][i] = float32(math.Sin(float64(i*i+k))) * float32(int(1)<<(i%20))
			if i%7 == 0 {
				out[k][i] = float32(math.Copysign(0, float64(i%2)-0.5))
			}
		}
	}
	return out
}

// laneSum is the sum of f over x in sixteen lanes, spelled out.
func laneSum(x []float32, f func(v float64) float64) float64 {
	var l [16]float64
	for i, v := range x {
		l[i%16] += f(float64(v))
	}
	a := [4]float64{}
	for i := range a {
		a[i] = float64(l[i]+l[i+8]) + float64(l[i+4]+l[i+12])
	}
	return float64(a[0]+a[2]) + float64(a[1]+a[3])
}

func TestSumF32(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths[1:] {
			for _, x := range float32s(t, n) {
				sum, low, high := SumF32(x)
				if want := laneSum(x, func(v float64) float64 { return v }); !sameBits(sum, want) {
					t.Fatalf("%d numbers: the sum is %v, want %v", n, sum, want)
				}
				least, most := x[0], x[0]
				for _, v := range x {
					least, most = min(least, v), max(most, v)
				}
				if low != least || high != most {
					t.Fatalf("%d numbers: from %v to %v, want %v to %v", n, low, high, least, most)
				}
				if low == 0 && math.Signbit(float64(low)) || high == 0 && math.Signbit(float64(high)) {
					t.Fatalf("%d numbers: a limit is -0", n)
				}
			}
		}
	})
}

func TestSumF32NotFinite(t *testing.T) {
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	each(t, func(t *testing.T) {
		for _, n := range []int{1, 15, 16, 17, 100} {
			for at := range n {
				for _, v := range bad {
					x := make([]float32, n)
					x[at] = v
					if at > 0 {
						x[0] = bad[1]
					}
					if sum, _, _ := SumF32(x); !math.IsNaN(sum) && !math.IsInf(sum, 0) {
						t.Fatalf("%v at %d of %d: the sum is %v", v, at, n, sum)
					}
				}
			}
		}
	})
}

func TestSquaresF32(t *testing.T) {
	const mean = 0.1
	each(t, func(t *testing.T) {
		for _, n := range lengths {
			for _, x := range float32s(t, n) {
				want := laneSum(x, func(v float64) float64 { return float64((v - mean) * (v - mean)) })
				if got := SquaresF32(x, mean); !sameBits(got, want) {
					t.Fatalf("%d numbers: %v, want %v", n, got, want)
				}
			}
		}
	})
}

func TestPiecesF32(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 3, 7} {
			for _, x := range float32s(t, n*Piece) {
				sums, squares := make([]float64, n), make([]float64, n)
				low, high := PiecesF32(sums, squares, x)
				if low != slices.Min(x) || high != slices.Max(x) || low == 0 && math.Signbit(float64(low)) {
					t.Fatalf("%d pieces: from %v to %v, want %v to %v", n, low, high, slices.Min(x), slices.Max(x))
				}
				for i := range sums {
					p := x[i*Piece:][:Piece]
					sum, _, _ := SumF32(p)
					if square := SquaresF32(p, sum/Piece); !sameBits(sums[i], sum) || !sameBits(squares[i], square) {
						t.Fatalf("piece %d of %d: %v and %v, want %v and %v", i, n, sums[i], squares[i], sum, square)
					}
				}
			}
		}
	})
}

func TestPiecesF32NotFinite(t *testing.T) {
	each(t, func(t *testing.T) {
		for at := 0; at < 3*Piece; at += 509 {
			for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
				x, sums, squares := make([]float32, 3*Piece), make([]float64, 3), make([]float64, 3)
				x[at] = v
				PiecesF32(sums, squares, x)
				for i, s := range sums {
					if finite := s-s == 0; finite != (i != at/Piece) {
						t.Fatalf("%v at %d: the sum of piece %d is %v", v, at, i, s)
					}
				}
			}
		}
	})
}

func BenchmarkPiecesF32(b *testing.B) {
	x, sums, squares := make([]float32, 147*Piece), make([]float64, 147), make([]float64, 147)
	b.SetBytes(4 * int64(len(x)))
	for b.Loop() {
		PiecesF32(sums, squares, x)
	}
}

func BenchmarkMomentsF32(b *testing.B) {
	x := make([]float32, 2048)
	b.SetBytes(int64(len(x)) * int64(unsafe.Sizeof(x[0])))
	for b.Loop() {
		sum, _, _ := SumF32(x)
		SquaresF32(x, sum/float64(len(x)))
	}
}

func TestWiden16(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range append([]int{1 << 16}, lengths...) { // of 65,536, all that there are
			src, dst := floats[uint16](t, n), floats[float32](t, n)
			for k := range src {
				for i := range src[k] {
					src[k][i] = uint16(i)
				}
				same := func(i int, want float32) {
					if got := dst[k][i]; math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
						t.Fatalf("%d numbers: number %d is %v, want %v", n, i, got, want)
					}
				}
				half := unsafe.Slice((*tensor.Half)(unsafe.Pointer(unsafe.SliceData(src[k]))), n)
				WidenF16(dst[k], half)
				for i, v := range half {
					same(i, v.Float32())
				}
				brain := unsafe.Slice((*tensor.Brain)(unsafe.Pointer(unsafe.SliceData(src[k]))), n)
				WidenBF16(dst[k], brain)
				for i, v := range brain {
					same(i, v.Float32())
				}
			}
		}
	})
}
