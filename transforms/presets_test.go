package transforms

import (
	"bytes"
	"fmt"
	"image"
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

func TestTimmEval(t *testing.T) {
	for _, tt := range []struct {
		size   int
		pct    float64
		mode   string
		scaled image.Point
	}{{224, .875, "", image.Pt(341, 256)}, {224, .96, "squash", image.Pt(233, 233)}, {299, 1, "center",
		image.Pt(398, 299)}, {224, .875, "border", image.Pt(256, 192)}} {
		ts, err := TimmEval(tt.size, tt.pct, tt.mode, "bicubic")
		require.NoError(t, err)
		out, err := mustCompose(t, ts[0]).Output(Info{W: 500, H: 375, C: 3})
		if err != nil || image.Pt(out.W, out.H) != tt.scaled {
			t.Errorf("%+v: %v, %v", tt, out, err)
		}
		out, err = mustCompose(t, ts...).Output(Info{W: 500, H: 375, C: 3})
		if err != nil || out.W != tt.size || out.H != tt.size {
			t.Errorf("%+v: %v, %v", tt, out, err)
		}
	}
	for _, err := range []error{second(TimmEval(0, 1, "", "")), second(TimmEval(1, 0, "", "")),
		second(TimmEval(1, 2, "", "")), second(TimmEval(1, 1, "bordr", ""))} {
		if err == nil {
			t.Error("no error")
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestImg2Dataset(t *testing.T) {
	for _, tt := range []struct {
		t          Img2Dataset
		w, h       int
		outW, outH int
	}{
		{Img2Dataset{}, 500, 375, 256, 256},
		{Img2Dataset{}, 10, 5, 256, 256},
		{Img2Dataset{OnlyIfBigger: true}, 10, 5, 10, 5},
		{Img2Dataset{Mode: "fixed", OnlyIfBigger: true}, 300, 200, 256, 256},
		{Img2Dataset{Mode: "fixed", OnlyIfBigger: true}, 256, 200, 256, 200},
		{Img2Dataset{Mode: "no"}, 500, 375, 500, 375},
		{Img2Dataset{Mode: "fixed", ImageSize: new(64)}, 500, 375, 64, 64},
		{Img2Dataset{Mode: "keep_ratio"}, 500, 331, 387, 256},
		{Img2Dataset{Mode: "keep_ratio", OnlyIfBigger: true}, 300, 200, 300, 200},
		{Img2Dataset{Mode: "center_crop"}, 500, 331, 256, 256},
		{Img2Dataset{Mode: "center_crop", OnlyIfBigger: true}, 300, 200, 300, 200},
		{Img2Dataset{Mode: "keep_ratio_largest"}, 331, 500, 169, 256},
	} {
		out, err := mustCompose(t, tt.t).Output(Info{W: tt.w, H: tt.h, C: 3})
		if err != nil || out.W != tt.outW || out.H != tt.outH {
			t.Errorf("%+v of %dx%d: %v, %v", tt.t, tt.w, tt.h, out, err)
		}
	}
	border := apply(t, testImage(40, 20, 3), Img2Dataset{ImageSize: new(40)})
	if border[0] != 255 || border[len(border)-1] != 255 || !bytes.Equal(border[10*120:30*120], testImage(40, 20, 3).Pix) {
		t.Error("no white border about the image")
	}
	src := testImage(27, 20, 3)
	got := apply(t, src, Img2Dataset{ImageSize: new(20), Mode: "center_crop"})
	if want := apply(t, src, Crop{Left: 3, Height: 20, Width: 20}); !bytes.Equal(got, want) {
		t.Error("the center, at 3.5, is not rounded down")
	}
	ours := apply(t, src, Img2Dataset{ImageSize: new(10), Downscale: "area"})
	if !bytes.Equal(ours, apply(t, src, Img2Dataset{ImageSize: new(10), Downscale: "box"})) {
		t.Error("area is not box")
	}
}

// The sizes are those that timm's ResizeKeepRatio makes.
func TestResizeKeepRatio(t *testing.T) {
	for _, tt := range []struct {
		size    []int
		longest float64
		w, h    int
		outW    int
		outH    int
	}{
		{[]int{224, 224}, 0, 500, 375, 299, 224},
		{[]int{224, 224}, 1, 500, 375, 224, 168},
		{[]int{224, 224}, 0.5, 500, 375, 256, 192},
		{[]int{256, 192}, 1, 333, 500, 170, 256},
		{[]int{256, 192}, 0, 333, 500, 192, 288},
		{[]int{100, 40}, 1, 7, 5, 40, 29},
		{[]int{100, 40}, 0.3, 7, 5, 80, 57},
		{[]int{232, 232}, 1, 1, 9, 26, 232},
		{[]int{64, 64}, 1, 97, 89, 64, 59},
		{[]int{33, 65}, 0, 97, 89, 65, 60},
	} {
		out, err := mustCompose(t, ResizeKeepRatio{Size: tt.size, Longest: tt.longest}).Output(Info{W: tt.w, H: tt.h, C: 3})
		if err != nil || out.W != tt.outW || out.H != tt.outH {
			t.Errorf("%+v: %v, %v", tt, out, err)
		}
	}
	tall := testImage(20, 200, 3)
	for _, order := range []string{"horizontal", "auto"} {
		got := apply(t, tall, ResizeKeepRatio{Size: []int{60}, Longest: 1, PassOrder: order})
		if want := apply(t, tall, Resize{Size: []int{60, 6}, PassOrder: order}); !bytes.Equal(got, want) {
			t.Errorf("order %s differs", order)
		}
	}
	src := testImage(40, 20, 3)
	got := apply(t, src, CenterCropOrPad{Size: []int{30, 36}, Fill: []int{1, 2, 3}})
	want := apply(t, src, Crop{Left: 2, Height: 20, Width: 36}, Pad{Padding: []int{0, 5}, Fill: []int{1, 2, 3}})
	if !bytes.Equal(got, want) {
		t.Error("the center with a border differs")
	}
}

// A record times a matrix, less the mean, by hand.
func TestLinearTransformation(t *testing.T) {
	src := &Image{Pix: []byte{10, 20, 30}, W: 1, H: 1, C: 3, Step: 3, Stride: 3}
	m := LinearTransformation{Matrix: [][]float64{{1, 0, 2}, {0, 3, 0}, {.5, 0, -1}}, Mean: []float64{1, 2, 3}}
	raw := ConvertDType{DType: tensor.Float32, NoScale: true}
	p := mustCompose(t, raw, m)
	got := make([]float32, 3)
	dst := tensor.Of(tensor.Spec{DType: tensor.Float32}, 3, make([]byte, 12))
	r := p.Runner()
	var err error
	if n := testing.AllocsPerRun(5, func() { err = r.Do(dst.Bytes(), src) }); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if copy(got, tensor.As[float32](dst)); got[0] != 9+13.5 || got[1] != 54 || got[2] != 18-27 {
		t.Errorf("%v", got)
	}
	for want, ts := range map[string][]Transform{
		"put ConvertDType to float32 before it":                        {m},
		"transform RandomErasing: input is multiplied by a matrix":     {raw, m, RandomErasing{P: new(1.0)}},
		"transform HorizontalFlip: input is multiplied":                {raw, m, HorizontalFlip{}},
		"matrix of 3 rows for an input float32 (2, 1, 3) of 6 numbers": {Pad{Padding: []int{0, 1, 0, 0}}, raw, m},
	} {
		if _, err := mustCompose(t, ts...).Output(InfoOf(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, bad := range []LinearTransformation{{}, {Matrix: [][]float64{{1, 2}}, Mean: []float64{1}},
		{Matrix: [][]float64{{math.Inf(1)}}, Mean: []float64{1}}} {
		if _, err := Compose(bad); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

func TestTenCrop(t *testing.T) {
	src := testImage(21, 17, 3)
	ps, err := TenCrop(nil, []int{8, 10}, []Transform{ToLayout{HWC}})
	require.NoError(t, err)
	want := []image.Point{{0, 0}, {11, 0}, {0, 9}, {11, 9}, {6, 4}} // 5.5 rounds to 6, 4.5 to 4
	for i, p := range ps {
		at := want[i%5]
		ts := []Transform{Crop{Top: at.Y, Left: at.X, Height: 8, Width: 10}}
		if i >= 5 {
			ts = []Transform{HorizontalFlip{}, ts[0]}
		}
		got := make([]byte, 8*10*3)
		if err := p.Runner().Do(got, src); err != nil || !bytes.Equal(got, apply(t, src, ts...)) {
			t.Errorf("crop %d, %v", i, err)
		}
	}
	if len(ps) != 10 {
		t.Error(len(ps))
	}
	if _, err := FiveCrop(nil, []int{0}, nil); err == nil ||
		!strings.Contains(err.Error(), "transform CornerCrop: size [0]") {
		t.Error(err)
	}
	if _, err := ps[0].Output(Info{W: 9, H: 100, C: 1}); err == nil {
		t.Error("a crop larger than the input")
	}
}

// TestGaussianBlur compares with the plain sum over the kernel in double precision.
func TestGaussianBlur(t *testing.T) {
	for _, size := range []image.Point{{30, 20}, {130, 9}, {5, 5}} {
		for _, c := range []int{1, 3} {
			for _, k := range []int{1, 3, 9} {
				for _, sigma := range []float64{0.1, 1, 2.5} {
					t.Run(fmt.Sprint(size, c, k, sigma), func(t *testing.T) {
						src := testImage(size.X, size.Y, c)
						p := mustCompose(t, GaussianBlur{KernelSize: k, Sigma: []float64{sigma}})
						got := NewImage(size.X, size.Y, c)
						err := p.Runner().DoRand(got.Pix, src, Rand{})
						if k/2 >= size.Y {
							if err == nil {
								t.Error("reflected beyond the image")
							}
							return
						}
						require.NoError(t, err)
						for i, v := range got.Pix {
							if want := blurred(src, i%c, i/c%size.X, i/c/size.X, k, sigma); math.Abs(float64(v)-want) > 0.501 {
								t.Fatalf("byte %d is %d, want %v", i, v, want)
							}
						}
					})
				}
			}
		}
	}
}

func blurred(m *Image, c, x, y, k int, sigma float64) float64 {
	sum, weights := 0.0, 0.0
	for dy := -(k / 2); dy <= k/2; dy++ {
		for dx := -(k / 2); dx <= k/2; dx++ {
			w := math.Exp(-0.5 * float64(dx*dx+dy*dy) / (sigma * sigma))
			weights += w
			sum += w * float64(m.Pix[PadReflect.from(y+dy, m.H)*m.Stride+PadReflect.from(x+dx, m.W)*m.C+c])
		}
	}
	return sum / weights
}
