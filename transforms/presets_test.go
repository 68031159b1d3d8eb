package transforms

import (
	"bytes"
	"fmt"
	"image"
	"math"
	"strings"
	"testing"
)

func TestTimmEval(t *testing.T) {
	for _, tt := range []struct {
		size   int
		pct    float64
		mode   string
		scaled image.Point
	}{{224, 0, "", image.Pt(341, 256)}, {224, .96, "squash", image.Pt(233, 233)}, {299, 1, "center", image.Pt(398, 299)}} {
		ts, err := TimmEval(tt.size, tt.pct, tt.mode, "bicubic")
		if err != nil {
			t.Fatal(err)
		}
		out, err := mustCompose(t, ts[0]).Output(Info{W: 500, H: 375, C: 3})
		if err != nil || image.Pt(out.W, out.H) != tt.scaled {
			t.Errorf("%+v: %v, %v", tt, out, err)
		}
		out, err = mustCompose(t, ts...).Output(Info{W: 500, H: 375, C: 3})
		if err != nil || out.W != tt.size || out.H != tt.size {
			t.Errorf("%+v: %v, %v", tt, out, err)
		}
	}
	for _, err := range []error{second(TimmEval(0, 0, "", "")), second(TimmEval(1, 2, "", "")), second(TimmEval(1, 1, "border", ""))} {
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
		{Img2Dataset{OnlyIfBigger: true}, 10, 5, 256, 256},
		{Img2Dataset{Mode: "no"}, 500, 375, 500, 375},
		{Img2Dataset{Mode: "fixed", ImageSize: 64}, 500, 375, 64, 64},
		{Img2Dataset{Mode: "keep_ratio"}, 500, 331, 387, 256},
		{Img2Dataset{Mode: "keep_ratio", OnlyIfBigger: true}, 300, 200, 300, 200},
		{Img2Dataset{Mode: "center_crop"}, 500, 331, 256, 256},
		{Img2Dataset{Mode: "center_crop", OnlyIfBigger: true}, 300, 200, 256, 200},
		{Img2Dataset{Mode: "keep_ratio_largest"}, 331, 500, 169, 256},
	} {
		out, err := mustCompose(t, tt.t).Output(Info{W: tt.w, H: tt.h, C: 3})
		if err != nil || out.W != tt.outW || out.H != tt.outH {
			t.Errorf("%+v of %dx%d: %v, %v", tt.t, tt.w, tt.h, out, err)
		}
	}
	border := apply(t, testImage(40, 20, 3), Img2Dataset{ImageSize: 40})
	if border[0] != 255 || border[len(border)-1] != 255 || !bytes.Equal(border[10*120:30*120], testImage(40, 20, 3).Pix) {
		t.Error("no white border about the image")
	}
}

func TestTenCrop(t *testing.T) {
	src := testImage(21, 17, 3)
	ps, err := TenCrop(nil, []int{8, 10}, []Transform{ToLayout{HWC}})
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := FiveCrop(nil, []int{0}, nil); err == nil || !strings.Contains(err.Error(), "transform CornerCrop: size [0]") {
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
						if err != nil {
							t.Fatal(err)
						}
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
