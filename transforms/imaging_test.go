package transforms

import (
	"image"
	"testing"

	"github.com/disintegration/imaging"
)

// TestLikeImaging compares with imaging's filters, which are Pillow's in floating point: they
// may differ by one.
func TestLikeImaging(t *testing.T) {
	filters := map[string]imaging.ResampleFilter{"bilinear": imaging.Linear, "bicubic": imaging.CatmullRom, "lanczos": imaging.Lanczos}
	sizes := [][4]int{{500, 375, 341, 256}, {100, 75, 133, 99}, {64, 48, 17, 90}, {31, 200, 30, 7}}
	for name, f := range filters {
		for _, n := range sizes {
			m := testImage(n[0], n[1], 3)
			got := apply(t, m, Resize{Size: []int{n[3], n[2]}, Interpolation: name})
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

func nrgba(m *Image) *image.NRGBA {
	out := image.NewNRGBA(m.Bounds())
	for i := range m.W * m.H {
		copy(out.Pix[i*4:], m.Pix[i*3:i*3+3])
		out.Pix[i*4+3] = 255
	}
	return out
}

func abs(x int) int { return max(x, -x) }
