package jpeg

import "math"

// definition is the inverse transform of T.81 A.3.3, shifted to 0..255.
func definition(coefs *[64]int16) (out [64]float64) {
	norm := func(k int) float64 {
		if k == 0 {
			return math.Sqrt2 / 4
		}
		return 0.5
	}
	basis := func(k, x int) float64 { return norm(k) * math.Cos(float64((2*x+1)*k)*math.Pi/16) }
	for i := range out {
		for k, c := range coefs {
			out[i] += float64(c) * basis(k/8, i/8) * basis(k%8, i%8)
		}
		out[i] += 128
	}
	return out
}
