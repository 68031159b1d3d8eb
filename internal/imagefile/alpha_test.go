package imagefile

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/image/webp"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/internal/testkit/require"
)

// The integers are img2dataset's formula in floats, for every color and alpha.
func TestOverIsTheFormula(t *testing.T) {
	for _, background := range []int{0, 255} {
		for a := range 256 {
			for c := range 256 {
				p := []byte{byte(c), 0, 255, byte(a)}
				pixel.Over(p, background)
				want := math.RoundToEven(float64(a)/255*float64(c) + float64(background)*(1-float64(a)/255))
				if float64(p[0]) != want || p[3] != 255 {
					t.Fatalf("%d of alpha %d over %d is %v, want %v", c, a, background, p, want)
				}
			}
		}
	}
}

// transparent has what is transparent, in one way or another.
var transparent = []string{
	"RGBA.png", "RGBA16.png", "LA.png", "LA16.png", "transparent.png", "gray-transparent.png", "RGBA.tiff",
	"transparent.gif", "partial-transparent.gif", "lossy-alpha.webp", "lossless-alpha.webp", "animated-alpha.webp",
	"animated-alpha-partial.webp",
}

func TestAlphaAgainstPillow(t *testing.T) {
	for do, alpha := range map[string]Alpha{"white": OnWhite, "black": OnBlack} {
		for mode, channels := range map[string]Color{"RGB": RGB, "L": Gray} {
			p, d, plain := newPillow(t, mode, do), New(Options{Color: channels, Alpha: alpha}), New(Options{Color: channels})
			for _, name := range slices.Concat(transparent, []string{"RGB.png", "P.png", "partial.gif", "lossy-45x37.webp",
				"animated-partial.webp", "420.jpg"}) {
				want, ok := p.open(filepath.Join(kindsDir, name))
				if !ok {
					continue
				}
				got, err := openAll(t, d, readKind(t, name))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if largest, mean := difference(t, got, want); largest > 0 {
					t.Errorf("%s, %s on %s: differs from Pillow by up to %d, %.3f in the mean", name, mode, do, largest, mean)
				}
				if dropped, err := openAll(t, plain, readKind(t, name)); err != nil ||
					bytes.Equal(dropped.pix, got.pix) == slices.Contains(transparent, name) {
					t.Errorf("%s, %s on %s: is as if alpha were dropped, or should be (%v)", name, mode, do, err)
				}
			}
		}
	}
}

func encodePNG(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

// The same four colors, as RGBA and as a palette with transparency, one below the other.
func TestAlphaOfPNG(t *testing.T) {
	colors := color.Palette{
		color.NRGBA{200, 100, 50, 255}, color.NRGBA{200, 100, 50, 0}, color.NRGBA{200, 100, 50, 51}, color.NRGBA{0, 255, 9,
			128},
	}
	full, indexed := image.NewNRGBA(image.Rect(0, 0, 1, 4)), image.NewPaletted(image.Rect(0, 0, 1, 4), colors)
	for i, c := range colors {
		full.Set(0, i, c)
		indexed.SetColorIndex(0, i, uint8(i))
	}
	want := map[Alpha][]byte{
		DropAlpha: {200, 100, 50, 200, 100, 50, 200, 100, 50, 0, 255, 9},
		OnWhite:   {200, 100, 50, 255, 255, 255, 244, 224, 214, 127, 255, 132},
		OnBlack:   {200, 100, 50, 0, 0, 0, 40, 20, 10, 0, 128, 5},
	}
	for alpha, pix := range want {
		d := New(Options{Alpha: alpha})
		for _, m := range []image.Image{full, indexed} {
			got, err := openAll(t, d, encodePNG(t, m))
			if err != nil || !bytes.Equal(got.pix, pix) {
				t.Errorf("%T, alpha %d: %v, %v; want %v", m, alpha, got.pix, err, pix)
			}
		}
	}
}

// A lossy WebP has its alpha in a plane of its own.
func TestAlphaOfWebP(t *testing.T) {
	data := readKind(t, "lossy-alpha.webp")
	m, err := webp.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	planes := m.(*image.NYCbCrA)
	plain, white := New(Options{}), New(Options{Alpha: OnWhite})
	colors, err := openAll(t, plain, data)
	require.NoError(t, err)
	got, err := openAll(t, white, data)
	require.NoError(t, err)
	for i, v := range got.pix {
		a := float64(planes.A[planes.AOffset(i/3%got.w, i/3/got.w)])
		if want := math.Round(a/255*float64(colors.pix[i]) + 255 - a); float64(v) != want {
			t.Fatalf("byte %d is %d, want %v", i, v, want)
		}
	}
}
