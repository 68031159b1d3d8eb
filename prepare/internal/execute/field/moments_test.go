package field

import (
	"math"
	"testing"

	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Whatever way numbers come in, the statistics are those of all of them.
func TestFigures(t *testing.T) {
	spec := tensor.Spec{Name: "x", DType: tensor.Float64, Shape: tensor.Shape{2}}
	f := newMoments(0, spec, NormalizedField{})
	for _, pair := range [][2]float64{{1e9, 1}, {1e9 + 1, math.NaN()}, {1e9 + 2, 3}, {math.Inf(1), 5}} {
		var b []byte
		for _, v := range pair {
			for k := range 8 {
				b = append(b, byte(math.Float64bits(v)>>(8*k)))
			}
		}
		f.Add(b)
	}
	got := f.Transform()
	want := transforms.Standardize{Mean: []float64{1e9 + 1, 3}, Std: []float64{math.Sqrt(2.0 / 3), math.Sqrt(8.0 / 3)}}
	for i := range want.Mean {
		if math.Abs(got.Mean[i]-want.Mean[i]) > 1e-6 || math.Abs(got.Std[i]-want.Std[i]) > 1e-6 {
			t.Errorf("place %d: %v, %v; want %v, %v", i, got.Mean[i], got.Std[i], want.Mean[i], want.Std[i])
		}
	}
}
