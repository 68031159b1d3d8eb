package transforms

import (
	"bytes"
	"image"
	"image/color"
	"testing"

	"github.com/disintegration/imaging"

	"github.com/penstock/penstock/internal/testkit/require"
)

// TestLikeImaging compares with imaging's filters, which are Pillow's in floating point: they
// may differ by one.
func TestLikeImaging(t *testing.T) {
	filters := map[string]imaging.ResampleFilter{"bilinear": imaging.Linear, "bicubic": imaging.CatmullRom,
		"lanczos": imaging.Lanczos}
	sizes := [][4]int{{500, 375, 341, 256}, {100, 75, 133, 99}, {64, 48, 17, 90}, {31, 200, 30, 7}}
	for name, f := range filters {
		for _, n := range sizes {
			m := testImage(n[0], n[1], 3)
			got := apply(t, m, Resize{Size: []int{n[3], n[2]}, Interpolation: name, PassOrder: "horizontal"})
			want := imaging.Resize(nrgba(m), n[2], n[3], f)
			most := 0
			for i := range n[2] * n[3] {
				for c := range 3 {
					most = max(most, abs(int(got[i*3+c])-int(want.Pix[i*4+c])))
				}
			}
			if most > 1 {
				t.Errorf("%s %v: differs by %d", name, n, most)
			}
		}
	}
}

// TestImagingOps compares with imaging itself, sizes included.
func TestImagingOps(t *testing.T) {
	white := color.NRGBA{255, 255, 255, 255}
	type op struct {
		t    Transform
		want func(image.Image) *image.NRGBA
	}
	ops := []op{
		{Blur{Sigma: 1.5}, func(m image.Image) *image.NRGBA { return imaging.Blur(m, 1.5) }},
		{Sharpen{Sigma: 0.7}, func(m image.Image) *image.NRGBA { return imaging.Sharpen(m, 0.7) }},
		{AdjustGamma{Gamma: 1.4}, func(m image.Image) *image.NRGBA { return imaging.AdjustGamma(m, 1.4) }},
		{AdjustBrightness{Percentage: 20}, func(m image.Image) *image.NRGBA { return imaging.AdjustBrightness(m, 20) }},
		{AdjustContrast{Percentage: -30}, func(m image.Image) *image.NRGBA { return imaging.AdjustContrast(m, -30) }},
		{AdjustSaturation{Percentage: 50}, func(m image.Image) *image.NRGBA { return imaging.AdjustSaturation(m, 50) }},
	}
	for angle := -400.0; angle < 400; angle += 22.5 {
		ops = append(ops, op{Rotate{Angle: angle, Fill: []int{255}},
			func(m image.Image) *image.NRGBA { return imaging.Rotate(m, angle, white) }})
	}
	for _, size := range []image.Point{{1, 1}, {40, 31}, {7, 90}} {
		src := testImage(size.X, size.Y, 3)
		for _, o := range ops {
			want := o.want(nrgba(src))
			out, err := mustCompose(t, o.t).Output(InfoOf(src))
			require.NoError(t, err)
			if got := image.Pt(out.W, out.H); got != want.Rect.Max {
				t.Fatalf("%+v: %v, want %v", o.t, got, want.Rect.Max)
			}
			packed := make([]byte, 0, out.Bytes())
			for i := range out.W * out.H {
				packed = append(packed, want.Pix[4*i:4*i+3]...)
			}
			if !bytes.Equal(apply(t, src, o.t), packed) {
				t.Errorf("%+v: not what imaging makes", o.t)
			}
		}
	}
}

// TestFitAndFill compares sizes and parts with imaging's.
func TestFitAndFill(t *testing.T) {
	names := map[string]imaging.Anchor{"center": imaging.Center, "top": imaging.Top, "bottom": imaging.Bottom,
		"left":  imaging.Left,
		"right": imaging.Right, "top-left": imaging.TopLeft, "top-right": imaging.TopRight, "bottom-left": imaging.BottomLeft,
		"bottom-right": imaging.BottomRight}
	if len(names) != len(anchors) {
		t.Error(anchors)
	}
	for _, size := range []image.Point{{150, 110}, {110, 150}, {400, 101}, {100, 100}} {
		src := testImage(size.X, size.Y, 3)
		for _, box := range [][]int{{30, 60}, {60, 30}, {150, 150}, {21, 20}} {
			fit := imaging.Fit(nrgba(src), box[1], box[0], imaging.Linear)
			likeImaging(t, src, Fit{Size: box}, fit)
			for name, anchor := range names {
				likeImaging(t, src, Fill{Size: box, Anchor: name}, imaging.Fill(nrgba(src), box[1], box[0], anchor, imaging.Linear))
			}
		}
	}
}

// likeImaging holds that no byte differs by more than two: each of two passes rounds.
func likeImaging(t *testing.T, src *Image, op Transform, want *image.NRGBA) {
	t.Helper()
	out, err := mustCompose(t, op).Output(InfoOf(src))
	if err != nil || out.W != want.Rect.Dx() || out.H != want.Rect.Dy() {
		t.Fatalf("%+v of %dx%d: %v, %v; want %v", op, src.W, src.H, out, err, want.Rect)
	}
	for i, v := range apply(t, src, op) {
		if abs(int(v)-int(want.Pix[i/3*4+i%3])) > 2 {
			t.Fatalf("%+v of %dx%d: byte %d is %d, want %d", op, src.W, src.H, i, v, want.Pix[i/3*4+i%3])
		}
	}
}

func nrgba(m *Image) *image.NRGBA {
	out := image.NewNRGBA(m.Bounds())
	for i := range m.W * m.H {
		copy(out.Pix[i*4:], m.Pix[i*3:i*3+3])
		out.Pix[i*4+3] = 255
	}
	return out
}

func abs(x int) int { return max(x, -x) }
