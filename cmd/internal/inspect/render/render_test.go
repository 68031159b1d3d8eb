package render

import (
	"math"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestPlanesOf(t *testing.T) {
	for _, c := range []struct {
		layout  string
		shape   []int
		w, h, c int // w 0: no image
	}{
		{"", []int{28, 20}, 20, 28, 1},
		{"", []int{3, 20, 10}, 10, 20, 3},
		{"", []int{20, 10, 3}, 10, 20, 3},
		{"", []int{1, 5, 3}, 3, 5, 1},
		{"", []int{20, 10, 4}, 10, 20, 4},
		{tensor.HWC, []int{3, 5, 1}, 5, 3, 1},
		{tensor.CHW, []int{3, 5, 1}, 1, 5, 3},
		{tensor.CHW, []int{7, 5, 5}, 0, 0, 0},
		{"", []int{7, 5, 5}, 0, 0, 0},
		{"", []int{10}, 0, 0, 0},
		{"", []int{1, 10}, 0, 0, 0},
		{"", nil, 0, 0, 0},
		{"", []int{3, 8, 8, 8}, 0, 0, 0},
		{"", []int{3, 1 << 16, 2}, 0, 0, 0},
	} {
		f := store.NewField("x", tensor.Uint8, c.shape...)
		f.Layout = c.layout
		p, err := PixelLayoutOf(f)
		if (err != nil) != (c.w == 0) || err == nil && (p.W != c.w || p.H != c.h || p.C != c.c) {
			t.Errorf("%v %q: %+v, %v", c.shape, c.layout, p, err)
		}
	}
}

func TestToneOfOddValues(t *testing.T) {
	tone := linear(1, -1, 1, "")
	for v, want := range map[float64]uint8{math.Inf(1): 255, math.Inf(-1): 0, 5: 255, -5: 0, 0: 128} {
		if got := tone.Value(v, 0); got != want {
			t.Errorf("%v is %d, want %d", v, got, want)
		}
	}
	if got := tone.Value(math.NaN(), 0); got != 0 {
		t.Errorf("NaN is %d", got)
	}
	if got := linear(1, 3, 3, "").Value(3, 0); got != 0 {
		t.Errorf("a constant image is %d", got)
	}
}
