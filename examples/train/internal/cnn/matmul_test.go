package cnn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The blocked product must be that of the definition, for sizes on every side of the
// blocks' 2 and 4.
func TestAddProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, m := range []int{1, 2, 3, 6} {
		for _, n := range []int{1, 5} {
			for _, k := range []int{1, 3, 4, 5, 8, 11} {
				for _, turned := range []bool{false, true} {
					t.Run(fmt.Sprint(m, n, k, turned), func(t *testing.T) { checkProduct(t, r, m, n, k, turned) })
				}
			}
		}
	}
}

func checkProduct(t *testing.T, r *rand.Rand, m, n, k int, turned bool) {
	a, b, c := noise(r, m*k), noise(r, k*n), noise(r, m*n)
	row, col := k, 1
	if turned {
		row, col = 1, m
	}
	want := make([]float64, m*n)
	for i := range m {
		for j := range n {
			want[i*n+j] = float64(c[i*n+j])
			for p := range k {
				want[i*n+j] += float64(a[i*row+p*col]) * float64(b[p*n+j])
			}
		}
	}
	addProduct(c, a, b, m, n, k, row, col)
	for i := range c {
		if math.Abs(float64(c[i])-want[i]) > 1e-5 {
			t.Fatalf("element %d is %v, not %v", i, c[i], want[i])
		}
	}
}

func noise(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

func TestTranspose(t *testing.T) {
	dst := make([]float32, 6)
	transpose(dst, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if got := fmt.Sprint(dst); got != "[1 4 2 5 3 6]" {
		t.Error(got)
	}
}

func BenchmarkAddProduct(b *testing.B) {
	const m, n, k = 64, 64, 288
	r := rand.New(rand.NewPCG(1, 2))
	x, y, z := noise(r, m*k), noise(r, k*n), noise(r, m*n)
	for b.Loop() {
		addProduct(z, x, y, m, n, k, k, 1)
	}
	b.ReportMetric(2*m*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOPS")
}
