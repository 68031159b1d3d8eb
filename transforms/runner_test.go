package transforms

import (
	"bytes"
	"errors"
	"image"
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// stripes delivers an image n rows at a time and notes what was asked for.
type stripes struct {
	*Image
	n     int
	asked image.Rectangle
}

func (s *stripes) Scan(r image.Rectangle, f func(int, Image) error) error {
	s.asked = r
	for y := r.Min.Y; y < r.Max.Y; y += s.n {
		part := r
		part.Min.Y, part.Max.Y = y, min(y+s.n, r.Max.Y)
		if err := f(y, s.Sub(part)); err != nil {
			return err
		}
	}
	return nil
}

// planarOf returns the planes of m.
func planarOf(m *Image) *Planar {
	p := &Planar{W: m.W, H: m.H, C: m.C}
	for c := range m.C {
		for i := c; i < len(m.Pix); i += m.C {
			p.Pix = append(p.Pix, m.Pix[i])
		}
	}
	return p
}

// pipelines exercises what the Plan can fuse and what it cannot.
var pipelines = map[string][]Transform{
	"nothing":        {},
	"crop":           {Crop{Top: 3, Left: 5, Height: 40, Width: 30}},
	"resize":         {Resize{Size: []int{31, 47}}},
	"wider":          {Resize{Size: []int{61, 80}, Interpolation: "bicubic"}},
	"taller":         {Resize{Size: []int{90, 73}, Interpolation: "lanczos"}},
	"vertical first": {Resize{Size: []int{20, 70}, PassOrder: "auto"}, CenterCrop{Size: []int{18, 51}}, HorizontalFlip{}, Pad{Padding: []int{1}}},
	"gray tall":      {Grayscale{}, Resize{Size: []int{3, 60}, Interpolation: "lanczos", PassOrder: "auto"}, VerticalFlip{}},
	"crop-resize":    {Crop{Top: 3, Left: 5, Height: 40, Width: 30}, Resize{Size: []int{20, 50}}, Crop{Top: 2, Left: 3, Height: 10, Width: 9}},
	"resize twice":   {Resize{Size: []int{50}}, CenterCrop{Size: []int{40}}, Resize{Size: []int{24}, Interpolation: "bicubic"}},
	"gray first":     {Grayscale{}, Resize{Size: []int{20}}, Pad{Padding: []int{2}, Fill: []int{7}}},
	"gray last":      {Resize{Size: []int{20}}, Grayscale{}, HorizontalFlip{}},
	"gray 3":         {Resize{Size: []int{20}}, Grayscale{Channels: new(3)}},
	"gray rgb":       {Grayscale{}, Resize{Size: []int{20}}, RGB{}, Pad{Padding: []int{1}}},
	"flips":          {HorizontalFlip{}, Crop{Top: 1, Left: 2, Height: 30, Width: 31}, VerticalFlip{}, Crop{Top: 4, Left: 1, Height: 20, Width: 21}},
	"flip-resize":    {VerticalFlip{}, Resize{Size: []int{33, 21}}, HorizontalFlip{}},
	"pad-flip":       {Pad{Padding: []int{1, 2, 3, 4}, Mode: PadSymmetric}, HorizontalFlip{}, VerticalFlip{}},
	"pad-crop":       {Pad{Padding: []int{9}, Mode: PadReflect}, Crop{Top: 2, Left: 3, Height: 60, Width: 70}, Pad{Padding: []int{1}, Mode: PadEdge}},
	"pad-gray":       {Pad{Padding: []int{1}, Fill: []int{10, 200, 30}}, Grayscale{}},
	"letterbox":      {Resize{Size: []int{40}, Fit: "pad", Fill: []int{3, 2, 1}}, VerticalFlip{}},
	"cover":          {Resize{Size: []int{40}, Fit: "cover", Interpolation: "box"}},
	"center larger":  {CenterCrop{Size: []int{100, 20}}},
	"nearest":        {Resize{Size: []int{100, 20}, Interpolation: "nearest"}, CenterCrop{Size: []int{10}}},
}

// TestPlanesOfManyStrips mirrors and cuts planes that are larger than what is mirrored at a
// time, rows that are longer, and rows that are shorter than a vector.
func TestPlanesOfManyStrips(t *testing.T) {
	for _, size := range []image.Point{{211, 120}, {9001, 3}, {28, 28}, {17, 1200}, {9, 2000}} {
		for _, c := range []int{1, 3} {
			src := testImage(size.X, size.Y, c)
			for _, p := range []*Pipeline{
				mustCompose(t, HorizontalFlip{}),
				mustCompose(t, HorizontalFlip{}, VerticalFlip{}),
				mustCompose(t, Crop{Top: 1, Left: 2, Height: size.Y - 1, Width: size.X - 5}, HorizontalFlip{}),
			} {
				out, err := p.Output(InfoOf(src))
				require.NoError(t, err)
				want, got := NewImage(out.W, out.H, c), NewImage(out.W, out.H, c)
				require.NoError(t, errors.Join(p.Runner().DoRand(want.Pix, src, Rand{}), p.Runner().DoRand(got.Pix, planarOf(src),
					Rand{})))
				if !bytes.Equal(got.Pix, want.Pix) {
					t.Errorf("%v, %d channels: planes are not what pixels are", size, c)
				}
			}
		}
	}
}

// TestFusedEqualsSteps runs each pipeline at once and operation by operation.
func TestFusedEqualsSteps(t *testing.T) {
	for name, ts := range pipelines {
		for _, c := range []int{1, 3} {
			src := testImage(73, 61, c)
			want := src
			for _, op := range ts {
				out, err := mustCompose(t, op).Output(InfoOf(want))
				if err != nil {
					t.Fatal(name, err)
				}
				next := NewImage(out.W, out.H, out.C)
				if err := mustCompose(t, op).Runner().DoRand(next.Pix, want, Rand{}); err != nil {
					t.Fatal(name, err)
				}
				want = next
			}
			p := mustCompose(t, ts...)
			sources := []Source{src, &stripes{Image: src, n: 1}, &stripes{Image: src, n: 7}, &stripes{Image: src, n: 50}}
			if c == 3 {
				sources = append(sources, quad(src), &stripes{Image: quad(src), n: 3})
			}
			sources = append(sources, planarOf(src))
			r := p.Runner()
			for i, s := range sources {
				got := make([]byte, len(want.Pix))
				if err := r.DoRand(got, s, Rand{}); err != nil || !bytes.Equal(got, want.Pix) {
					t.Errorf("%s, %d channels, source %d: not what the steps make; %v", name, c, i, err)
				}
			}
		}
	}
}

// TestStores compares each type and layout with the formula, step by step in float32.
func TestStores(t *testing.T) {
	mean, std := []float64{.485, .456, .406}, []float64{.229, .224, .225}
	for name, ts := range pipelines {
		for _, c := range []int{1, 3} {
			src := testImage(73, 61, c)
			p := mustCompose(t, ts...)
			out, err := p.Output(InfoOf(src))
			require.NoError(t, err)
			u8 := make([]byte, out.Bytes())
			require.NoError(t, p.Runner().DoRand(u8, src, Rand{}))
			for _, layout := range []Layout{HWC, CHW} {
				for _, dt := range []tensor.DType{tensor.Uint8, tensor.Float32, tensor.Float16, tensor.BFloat16} {
					all := append(append([]Transform{}, ts...), ToLayout{layout}, ConvertDType{DType: dt})
					if dt != tensor.Uint8 {
						all = append(all, Normalize{Mean: mean[:out.C], Std: std[:out.C]})
					}
					checkStore(t, name, mustCompose(t, all...), src, u8, mean, std)
				}
			}
		}
	}
}

func checkStore(t *testing.T, name string, p *Pipeline, src *Image, u8 []byte, mean, std []float64) {
	t.Helper()
	out, err := p.Output(InfoOf(src))
	require.NoError(t, err)
	dst := make([]byte, out.Bytes())
	r := p.Runner()
	require.NoError(t, r.DoRand(dst, planarOf(src), Rand{}))
	planar := bytes.Clone(dst)
	require.NoError(t, r.DoRand(dst, src, Rand{}))
	if !bytes.Equal(dst, planar) {
		t.Fatalf("%s: %v %v: another result from planes", name, out, out.Layout)
	}
	view := tensor.Of(tensor.Spec{DType: out.DType, Shape: out.Shape()}, 1, dst)
	for i, x := range u8 {
		c, at := i%out.C, i
		if out.Layout == CHW {
			at = c*out.W*out.H + i/out.C
		}
		y := float32(x) / 255
		y = y - float32(mean[c])
		y = y / float32(std[c])
		bad := false
		switch out.DType {
		case tensor.Uint8:
			bad = dst[at] != x
		case tensor.Float32:
			got := tensor.As[float32](view)[at]
			bad = got != y || math.Abs(float64(got)-(float64(x)/255-mean[c])/std[c]) > 1e-6
		case tensor.Float16:
			bad = tensor.As[tensor.Half](view)[at] != tensor.HalfOf(y)
		case tensor.BFloat16:
			bad = tensor.As[tensor.Brain](view)[at] != tensor.BrainOf(y)
		}
		if bad {
			t.Fatalf("%s: %v %v: element %d of byte %d, channel %d differs", name, out, out.Layout, at, x, c)
		}
	}
}

// TestScansOnlyWhatTheCropNeeds looks at the rectangle that is asked for.
func TestScansOnlyWhatTheCropNeeds(t *testing.T) {
	src := &stripes{Image: testImage(500, 100, 3), n: 9}
	apply(t, src, Resize{Size: []int{50}}, CenterCrop{Size: []int{20}})
	// Output columns 115..135 and rows 15..35 have their centers at 231..269 and 31..69, and
	// the filter reaches 2 pixels further.
	if want := image.Rect(229, 29, 271, 71); src.asked != want {
		t.Errorf("asked for %v, want %v", src.asked, want)
	}
}

func TestDoAllocatesNothing(t *testing.T) {
	p := mustCompose(t, Resize{Size: []int{50}}, CenterCrop{Size: []int{40}}, RandomHorizontalFlip{},
		Resize{Size: []int{10, 36}, PassOrder: "auto"}, Resize{Size: []int{44}, Fit: "exact"},
		Pad{Padding: []int{2}, Mode: PadReflect}, ToLayout{CHW}, ConvertDType{DType: tensor.Float32},
		Normalize{Mean: []float64{.5}, Std: []float64{.2}})
	sources := []Source{testImage(100, 80, 3), quad(testImage(77, 140, 3)), &stripes{Image: testImage(90, 91, 3), n: 8},
		planarOf(testImage(99, 60, 3))}
	r := p.Runner()
	dst := make([]byte, 48*48*3*4)
	record := uint64(0)
	err := error(nil)
	do := func() {
		for _, s := range sources {
			record++
			err = errors.Join(err, r.DoRand(dst, s, NewRand(1, 2, record)))
		}
	}
	do()
	if n := testing.AllocsPerRun(20, do); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

func TestDoErrors(t *testing.T) {
	src := testImage(20, 10, 3)
	if err := mustCompose(t, RandomVerticalFlip{}).Runner().Do(make([]byte, 600), src); err == nil ||
		!strings.Contains(err.Error(), "DoRand") {
		t.Error(err)
	}
	r := mustCompose(t, Resize{Size: []int{5}}).Runner()
	if err := r.Do(make([]byte, 7), src); err == nil ||
		!strings.Contains(err.Error(), "uint8 (5, 10, 3) has 150 bytes, and the record 7") {
		t.Error(err)
	}
	boom := errors.New("boom")
	if err := r.Do(make([]byte, 150), failing{src, boom}); !errors.Is(err, boom) {
		t.Error(err)
	}
	if err := r.Do(make([]byte, 150), failing{src, nil}); err == nil ||
		!strings.Contains(err.Error(), "source ended after 0 of 5 output rows") {
		t.Error(err)
	}
	if err := r.Do(make([]byte, 150), shifted{src}); err == nil ||
		!strings.Contains(err.Error(), "asked for rows 0 to 10") {
		t.Error(err)
	}
	bad := *src
	bad.Stride = 1
	if err := r.Do(make([]byte, 150), &bad); err == nil || !strings.Contains(err.Error(), "only 1 bytes from row to row") {
		t.Error(err)
	}
	if err := r.Do(make([]byte, 150), src); err != nil {
		t.Error("after errors:", err)
	}
}

// failing delivers nothing.
type failing struct {
	*Image
	err error
}

func (f failing) Scan(image.Rectangle, func(int, Image) error) error { return f.err }

// shifted delivers the wrong rows.
type shifted struct{ *Image }

func (s shifted) Scan(r image.Rectangle, f func(int, Image) error) error {
	return f(r.Min.Y+1, s.Sub(r))
}

func TestImageValidate(t *testing.T) {
	good := Image{Pix: make([]byte, 24), W: 4, H: 2, C: 3, Step: 3, Stride: 12}
	require.NoError(t, good.Validate())
	for name, change := range map[string]func(*Image){
		"no width":    func(m *Image) { m.W = 0 },
		"2 channels":  func(m *Image) { m.C = 2 },
		"step":        func(m *Image) { m.Step = 5 },
		"gray step":   func(m *Image) { m.C, m.Step = 1, 4 },
		"stride":      func(m *Image) { m.Stride = 11 },
		"few bytes":   func(m *Image) { m.Pix = m.Pix[:23] },
		"more height": func(m *Image) { m.H = 3 },
	} {
		m := good
		change(&m)
		if m.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
		if m.Scan(image.Rect(0, 0, 1, 1), func(int, Image) error { return nil }) == nil {
			t.Errorf("%s: scanned", name)
		}
	}
	if good.Scan(image.Rect(0, 0, 5, 1), func(int, Image) error { return nil }) == nil {
		t.Error("scanned more than there is")
	}
}

func TestRandIsAFunctionOfItsKey(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(8) {
		for epoch := range uint64(8) {
			for record := range uint64(64) {
				a, b := NewRand(seed, epoch, record), NewRand(seed, epoch, record)
				for range 4 {
					v := a.Uint64()
					if v != b.Uint64() {
						t.Fatal("not a function")
					}
					if seen[v] {
						t.Fatal("two streams overlap")
					}
					seen[v] = true
				}
			}
		}
	}
}

// TestRandIsUniform counts draws of neighboring records; the bound is 6 deviations.
func TestRandIsUniform(t *testing.T) {
	const n, bins = 100000, 10
	var count [bins]int
	for record := range uint64(n) {
		r := NewRand(7, 0, record)
		count[int(r.Float64()*bins)]++
	}
	for i, c := range count {
		if d := math.Abs(float64(c) - n/bins); d > 6*math.Sqrt(n/bins) {
			t.Errorf("bin %d has %d of %d", i, c, n)
		}
	}
}
