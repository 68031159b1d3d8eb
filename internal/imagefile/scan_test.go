package imagefile

import (
	"errors"
	"image"
	"math/rand/v2"
	"testing"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/internal/testkit/require"
)

// Whatever rectangle is scanned, and in whatever order, its pixels are those of the whole
// image.
func TestScanOfRectangles(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, color := range []Color{RGB, Gray} {
		d := New(Options{Color: color})
		kinds(t, func(name string, data []byte) {
			if notAsPillow[name] != "" {
				return
			}
			src, err := d.Open(data)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			w, h, _ := src.Size()
			all, err := gather(t, src, image.Rect(0, 0, w, h))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for range 40 {
				r := randomRect(rng, w, h)
				part, err := gather(t, src, r)
				if err != nil {
					t.Fatalf("%s: %v: %v", name, r, err)
				}
				if !equalPart(part, all, r) {
					t.Errorf("%s: pixels of %v are not those of the whole image", name, r)
				}
			}
		})
	}
}

func randomRect(rng *rand.Rand, w, h int) image.Rectangle {
	x0, y0 := rng.IntN(w), rng.IntN(h)
	return image.Rect(x0, y0, x0+1+rng.IntN(w-x0), y0+1+rng.IntN(h-y0))
}

func equalPart(part, all pixels, r image.Rectangle) bool {
	row := part.w * part.c
	for y := range part.h {
		at := ((r.Min.Y+y)*all.w + r.Min.X) * all.c
		if string(part.pix[y*row:][:row]) != string(all.pix[at:][:row]) {
			return false
		}
	}
	return true
}

func TestScanRefusesWhatIsOutside(t *testing.T) {
	d := New(Options{})
	for _, name := range []string{"420.jpg", "RGB.png", "420-progressive.jpg"} {
		src, err := d.Open(readKind(t, name))
		require.NoError(t, err)
		w, h, _ := src.Size()
		called := func(int, pixel.Image) error { t.Error("strip"); return nil }
		for _, r := range []image.Rectangle{image.Rect(0, 0, w+1, h), image.Rect(0, -1, w, h), image.Rect(w, h, w+1, h+1)} {
			if err := src.Scan(r, called); err == nil {
				t.Errorf("%s: scan of %v in %dx%d: no error", name, r, w, h)
			}
		}
		if err := src.Scan(image.Rectangle{}, called); err != nil {
			t.Errorf("%s: scan of nothing: %v", name, err)
		}
	}
}

func TestScanStopsWithTheError(t *testing.T) {
	stop := errors.New("stop")
	d := New(Options{})
	for _, name := range []string{"420.jpg", "RGB.png"} {
		src, err := d.Open(readKind(t, name))
		require.NoError(t, err)
		calls := 0
		err = src.Scan(image.Rect(0, 0, 45, 37), func(int, pixel.Image) error { calls++; return stop })
		if err != stop || calls != 1 {
			t.Errorf("%s: %v after %d strips, want the error of the first", name, err, calls)
		}
	}
}

// Once it has seen an image as large, a Decoder allocates no more for a JPEG.
func TestJPEGAllocatesNothing(t *testing.T) {
	nop := func(int, pixel.Image) error { return nil }
	for _, color := range []Color{RGB, Gray} {
		d := New(Options{Color: color})
		for _, name := range []string{"420.jpg", "422.jpg", "444.jpg", "gray.jpg", "cmyk.jpg", "420-progressive.jpg"} {
			data := readKind(t, name)
			got := testing.AllocsPerRun(10, func() {
				src, err := d.Open(data)
				require.NoError(t, err)
				w, h, _ := src.Size()
				require.NoError(t, src.Scan(image.Rect(0, 0, w, h), nop))
			})
			if got > 0 {
				t.Errorf("%s: %v allocations an image", name, got)
			}
		}
	}
}
