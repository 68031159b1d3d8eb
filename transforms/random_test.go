package transforms

import (
	"bytes"
	"image"
	"math"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// TestRandomOps holds what all random transforms have in common: the same stream gives the
// same record from any kind of source, records differ, nothing is allocated.
func TestRandomOps(t *testing.T) {
	for _, op := range allOps {
		if _, ok := op.(Randomized); !ok {
			continue
		}
		t.Run(opName(op), func(t *testing.T) {
			ts := []Transform{op}
			switch op.(type) {
			case RandomIoUCrop:
				return // needs boxes: see TestRandomIoUCrop
			case RandomZoomOut, ScaleJitter, RandomShortestSize, RandomResize: // which make random sizes
				ts = append(ts, Resize{Size: []int{50, 60}})
			}
			p := mustCompose(t, append(ts, ToLayout{CHW})...)
			src := testImage(60, 50, 3)
			toward(100, 0.5).apply(src.Pix) // leaves contrast to gain
			out, err := p.Output(InfoOf(src))
			require.NoError(t, err)
			a, b := make([]byte, out.Bytes()), make([]byte, out.Bytes())
			r, other, seen := p.Runner(), p.Runner(), map[string]bool{}
			for record := range uint64(60) {
				require.NoError(t, r.DoRand(a, src, NewRand(3, 1, record)))
				require.NoError(t, other.DoRand(b, planarOf(src), NewRand(3, 1, record)))
				if !bytes.Equal(a, b) {
					t.Fatalf("record %d differs", record)
				}
				seen[string(a)] = true
			}
			if len(seen) < 2 {
				t.Error("all records are alike")
			}
			record := uint64(0)
			do := func() {
				record++
				if err := r.DoRand(a, src, NewRand(3, 1, record%60)); err != nil {
					t.Error(err)
				}
			}
			for range 200 { // until each of the cached weights has had its largest size
				do()
			}
			if n := testing.AllocsPerRun(120, do); n > 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

func TestDrawPart(t *testing.T) {
	scale, ratio := []float64{0.08, 1}, []float64{3.0 / 4, 4.0 / 3}
	var mean float64
	const n = 20000
	for record := range uint64(n) {
		r := NewRand(1, 0, record)
		got := drawPart(&r, 500, 375, scale, ratio, anyPart)
		if got.Empty() || !got.In(image.Rect(0, 0, 500, 375)) {
			t.Fatalf("record %d: %v", record, got)
		}
		share, aspect := float64(got.Dx()*got.Dy())/(500*375), float64(got.Dx())/float64(got.Dy())
		if share < 0.079 || aspect < 0.73 || aspect > 1.37 {
			t.Fatalf("record %d: %v: share %v, aspect %v", record, got, share, aspect)
		}
		mean += share / n
	}
	// Python's version of the algorithm averages 0.433 over 200,000 draws.
	if math.Abs(mean-0.433) > 0.008 {
		t.Errorf("mean share %v", mean)
	}
	r := NewRand(1, 0, 0)
	for _, tt := range []struct {
		w, h int
		want image.Rectangle
	}{{100, 1, image.Rect(49, 0, 50, 1)}, {9, 300, image.Rect(0, 144, 9, 156)}} {
		if got := drawPart(&r, tt.w, tt.h, []float64{.99, 1}, ratio, anyPart); got != tt.want {
			t.Errorf("%dx%d: fell back to %v, want %v", tt.w, tt.h, got, tt.want)
		}
	}
}

// TestRandomCropPads checks that the border is complete and the part is anywhere.
func TestRandomCropPads(t *testing.T) {
	src := testImage(4, 4, 1)
	p := mustCompose(t, RandomCrop{Size: []int{6}, PadIfNeeded: true, Fill: []int{9}})
	r, seen := p.Runner(), map[[2]int]bool{}
	for record := range uint64(400) {
		dst := make([]byte, 36)
		require.NoError(t, r.DoRand(dst, src, NewRand(0, 0, record)))
		at := bytes.Index(dst, src.Pix[:4])
		if at < 0 {
			t.Fatalf("record %d has lost the image: %v", record, dst)
		}
		seen[[2]int{at % 6, at / 6}] = true
	}
	if len(seen) != 9 {
		t.Errorf("found at %d places, want 9", len(seen))
	}
}

func TestRandomErasing(t *testing.T) {
	src := testImage(30, 20, 3)
	for _, dt := range []tensor.DType{tensor.Uint8, tensor.Float32, tensor.Float16, tensor.BFloat16} {
		for _, layout := range []Layout{HWC, CHW} {
			ts := []Transform{ToLayout{layout}, ConvertDType{DType: dt, NoScale: true}}
			plain := apply(t, src, ts...)
			p := mustCompose(t, append(ts, RandomErasing{P: new(1.0), Value: []float64{1, 2, 4}},
				RandomVerticalFlip{P: new(1.0)}, RandomVerticalFlip{P: new(1.0)})...)
			out, err := p.Output(InfoOf(src))
			require.NoError(t, err)
			got := make([]byte, len(plain))
			require.NoError(t, p.Runner().DoRand(got, src, NewRand(5, 5, 5)))
			checkErased(t, out, numbers(out, plain), numbers(out, got))
		}
	}
}

// numbers returns a record as float64.
func numbers(info Info, b []byte) []float64 {
	v := tensor.Of(tensor.Spec{DType: info.DType, Shape: info.Shape()}, 1, b)
	out := make([]float64, info.W*info.H*info.C)
	for i := range out {
		switch info.DType {
		case tensor.Uint8:
			out[i] = float64(b[i])
		case tensor.Float32:
			out[i] = float64(tensor.As[float32](v)[i])
		case tensor.Float16:
			out[i] = float64(tensor.As[tensor.Half](v)[i].Float32())
		case tensor.BFloat16:
			out[i] = float64(tensor.As[tensor.Brain](v)[i].Float32())
		}
	}
	return out
}

// checkErased holds that a rectangle has the values 1, 2, 4 and the rest is as it was.
func checkErased(t *testing.T, info Info, was, is []float64) {
	t.Helper()
	at := func(s []float64, x, y, c int) float64 {
		if info.Layout == CHW {
			return s[(c*info.H+y)*info.W+x]
		}
		return s[(y*info.W+x)*info.C+c]
	}
	var hole image.Rectangle
	for y := range info.H {
		for x := range info.W {
			if at(was, x, y, 0) != at(is, x, y, 0) || at(was, x, y, 1) != at(is, x, y, 1) {
				hole = hole.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if share := float64(hole.Dx()*hole.Dy()) / 600; share < 0.01 || share > 0.35 {
		t.Fatalf("%v: erased %v", info, hole)
	}
	for y := range info.H {
		for x := range info.W {
			for c := range 3 {
				want := at(was, x, y, c)
				if image.Pt(x, y).In(hole) {
					want = float64(int(1) << c)
				}
				if at(is, x, y, c) != want {
					t.Fatalf("%v: pixel %d, %d channel %d is %v, want %v", info, x, y, c, at(is, x, y, c), want)
				}
			}
		}
	}
}

func TestErasingComesLast(t *testing.T) {
	for _, after := range []Transform{Crop{Height: 2, Width: 2}, Resize{Size: []int{4}},
		ConvertDType{DType: tensor.Float32}, RandomInvert{}} {
		p := mustCompose(t, RandomErasing{P: new(1.0), Scale: []float64{.2, .3}}, after)
		if _, err := p.Output(Info{W: 30, H: 20, C: 3}); err == nil {
			t.Errorf("%s may follow", opName(after))
		}
	}
}

// TestAugmentLevels holds the strengths of torchvision's tables for an image of 331 x 200.
func TestAugmentLevels(t *testing.T) {
	rand9 := []float64{0, .09, .09, 45, 27.190332, 9, .27, .27, .27, .27, 7, 178.5, 0, 0}
	wide30 := []float64{0, .99, .99, 32, 32, 135, .99, .99, .99, .99, 2, 0, 0, 0}
	for i, a := range augmentations {
		if a.level == nil {
			continue
		}
		if got := a.level(magnitude{9, 31}, &randAugmentSpace, 331, 200); math.Abs(got-rand9[i]) > 1e-6 {
			t.Errorf("RandAugment operation %d: %v, want %v", i, got, rand9[i])
		}
		if got := a.level(magnitude{30, 31}, &trivialAugmentSpace, 331, 200); math.Abs(got-wide30[i]) > 1e-6 {
			t.Errorf("TrivialAugmentWide operation %d: %v, want %v", i, got, wide30[i])
		}
	}
	if len(augmentations) != len(rand9) {
		t.Errorf("%d operations", len(augmentations))
	}
}

// TestWarpMoves holds the directions: right and down are positive.
func TestWarpMoves(t *testing.T) {
	src := testImage(20, 16, 3)
	got := apply(t, src, do(func(p *Plan) error { return addMove(p, 3, 2, 0, [3]byte{}) }))
	want := apply(t, src, Crop{Height: 14, Width: 17}, Pad{Padding: []int{3, 2, 0, 0}})
	if !bytes.Equal(got, want) {
		t.Error("not moved by 3 and 2")
	}
	square := testImage(16, 16, 3)
	got = apply(t, square, do(func(p *Plan) error { return addWarp(p, rotation(180, 8, 8), 0, [3]byte{}) }))
	if !bytes.Equal(got, apply(t, square, do(func(p *Plan) error { p.FlipHorizontal(); p.FlipVertical(); return nil }))) {
		t.Error("half a turn is not both flips")
	}
}

func TestDistributions(t *testing.T) {
	const n = 200000
	r := NewRand(1, 2, 3)
	moments := func(draw func() float64) (mean, variance float64) {
		for range n {
			v := draw()
			mean += v / n
			variance += v * v / n
		}
		return mean, variance - mean*mean
	}
	check := func(name string, mean, variance, wantMean, wantVariance float64) {
		if math.Abs(mean-wantMean) > 0.01 || math.Abs(variance-wantVariance) > 0.02*max(wantVariance, 0.1) {
			t.Errorf("%s: mean %v, variance %v; want %v, %v", name, mean, variance, wantMean, wantVariance)
		}
	}
	mean, variance := moments(r.Normal)
	check("normal", mean, variance, 0, 1)
	for _, a := range []float64{0.01, 0.2, 1, 4} {
		mean, variance := moments(func() float64 { return r.Beta(a) })
		check("beta", mean, variance, 0.5, 1/(4*(2*a+1)))
	}
}

// Random values have mean 0 and deviation 1: one for each pixel and channel of the rectangle,
// or one for each channel.
func TestRandomErasingByNoise(t *testing.T) {
	for _, mode := range []string{"pixel", "rand"} {
		p := mustCompose(t, ToLayout{CHW}, ConvertDType{DType: tensor.Float32},
			RandomErasing{P: new(1.0), Scale: []float64{0.2, 0.2}, Ratio: []float64{1, 1}, Mode: mode})
		r, src := p.Runner(), NewImage(40, 40, 3) // black
		out := make([]byte, 4*40*40*3)
		var sum, squares, n float64
		for record := range uint64(300) {
			require.NoError(t, r.DoRand(out, src, NewRand(4, 0, record)))
			values := map[float64]bool{}
			for _, v := range numbers(Info{W: 40, H: 40, C: 3, DType: tensor.Float32, Layout: CHW}, out) {
				if v != 0 {
					values[v] = true
					sum, squares, n = sum+v, squares+v*v, n+1
				}
			}
			if want := map[string]int{"pixel": 900, "rand": 3}[mode]; len(values) < want || mode == "rand" &&
				len(values) > want {
				t.Fatalf("%s: record %d has %d values", mode, record, len(values))
			}
		}
		mean := sum / n
		if deviation := math.Sqrt(squares/n - mean*mean); math.Abs(mean) > 0.15 || math.Abs(deviation-1) > 0.1 {
			t.Errorf("%s: mean %v, deviation %v", mode, mean, deviation)
		}
	}
}

// The shares of a Dirichlet distribution add up to 1 and are equal on average; they differ the
// more the smaller its parameter is.
func TestDirichlet(t *testing.T) {
	for _, tt := range []struct{ a, variance float64 }{{1, 0.0556}, {0.1, 0.1709}, {20, 0.00364}} {
		r := NewRand(8, 0, 0)
		const n = 20000
		var mean, squares float64
		for range n {
			var s [3]float64
			r.dirichlet(s[:], tt.a)
			if sum := s[0] + s[1] + s[2]; math.Abs(sum-1) > 1e-12 {
				t.Fatalf("%v add up to %v", s, sum)
			}
			mean += s[1] / n
			squares += s[1] * s[1] / n
		}
		if v := squares - mean*mean; math.Abs(mean-1.0/3) > 0.01 || math.Abs(v-tt.variance) > 0.05*tt.variance {
			t.Errorf("parameter %v: mean %v, variance %v", tt.a, mean, v)
		}
	}
}

// The distances of ElasticTransform are those that it is asked for: none without strength, far
// ones with it, and neighbors alike where they are smooth.
func TestElasticTransform(t *testing.T) {
	src := NewImage(80, 60, 3)
	for i := range src.Pix {
		src.Pix[i] = byte(i / 3 % 80 * 3) // brighter from left to right
	}
	moved := func(alpha, sigma float64) (most, steps int) {
		p := mustCompose(t, ElasticTransform{Alpha: []float64{alpha}, Sigma: []float64{sigma}})
		out := make([]byte, len(src.Pix))
		require.NoError(t, p.Runner().DoRand(out, src, NewRand(1, 2, 3)))
		for y := 15; y < 45; y++ { // far from what is outside
			for x := 20; x < 60; x++ {
				at := (y*80 + x) * 3
				far := int(out[at]) - int(src.Pix[at])
				most = max(most, far, -far)
				if next := int(out[at+3]) - int(out[at]) - 3; next > 2 || next < -2 {
					steps++
				}
			}
		}
		return most, steps
	}
	if most, _ := moved(0, 5); most != 0 {
		t.Errorf("a strength of 0 changes pixels by %d", most)
	}
	if most, steps := moved(50, 5); most < 2 || most > 40 || steps > 50 {
		t.Errorf("smooth distances change pixels by %d, with %d jumps", most, steps)
	}
	if _, steps := moved(6, 0); steps < 500 {
		t.Errorf("rough distances make %d jumps", steps)
	}
}
