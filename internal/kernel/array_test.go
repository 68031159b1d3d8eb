package kernel

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"
)

// float64s returns n numbers of all kinds at both ends of guarded memory.
func float64s(t *testing.T, n int) [2][]float64 {
	t.Helper()
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e300, -1e-300, 0.1, 255,
		1 + 1.0/(1<<24)}
	var out [2][]float64
	for k, b := range targets(t, 8*n) {
		if n > 0 {
			out[k] = unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), n)
		}
		for i := range out[k] {
			out[k][i] = special[i*7%len(special)]
			if i%3 == 0 {
				out[k][i] = float64(i)*1.7 - 300
			}
		}
	}
	return out
}

func sameBits(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

func TestArrayInPlace(t *testing.T) {
	kernels := map[string]struct {
		do   func(x []float64)
		want func(v float64) float64
	}{
		"standardize": {func(x []float64) { Standardize(x, 0.3, 0.7) }, func(v float64) float64 { return (v - 0.3) / 0.7 }},
		"scale":       {func(x []float64) { Scale(x, 0.3, 0.7) }, func(v float64) float64 { return float64(v*0.3) + 0.7 }},
		"round":       {RoundF32, func(v float64) float64 { return float64(float32(v)) }},
		"clip": {func(x []float64) { Clip(x, 0, 5.5) }, func(v float64) float64 {
			switch {
			case v < 0:
				return 0
			case v > 5.5:
				return 5.5
			}
			return v
		}},
	}
	each(t, func(t *testing.T) {
		for name, k := range kernels {
			for _, n := range lengths {
				for _, x := range float64s(t, n) {
					was := append([]float64(nil), x...)
					k.do(x)
					for i, v := range x {
						if want := k.want(was[i]); !sameBits(v, want) {
							t.Fatalf("%s of %d: %v became %v, want %v", name, n, was[i], v, want)
						}
					}
				}
			}
		}
	})
}

func TestArrayConversions(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range lengths {
			dst := float64s(t, n)
			placed(t, n, func(t *testing.T, src []byte) {
				for _, d := range dst {
					FromBytes(d, src)
					for i, v := range d {
						if v != float64(src[i]) {
							t.Fatalf("FromBytes of %d: %d became %v", n, src[i], v)
						}
					}
				}
			})
			for k, x := range float64s(t, n) {
				b := targets(t, 4*n)[k]
				ToF32(b, x)
				for i, v := range x {
					got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
					if !sameBits(float64(got), float64(float32(v))) {
						t.Fatalf("ToF32 of %d: %v became %v", n, v, got)
					}
				}
				FromF32(dst[k], b)
				for i, v := range dst[k] {
					if !sameBits(v, float64(float32(x[i]))) {
						t.Fatalf("FromF32 of %d: %v became %v", n, x[i], v)
					}
				}
			}
		}
	})
}
