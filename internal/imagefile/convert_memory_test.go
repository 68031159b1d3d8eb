package imagefile

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	stdpng "image/png"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/internal/testkit/require"
)

// imagesOf returns images of each type that package png knows.
func imagesOf(w, h int) []image.Image {
	r, rng := image.Rect(0, 0, w, h), rand.New(rand.NewPCG(1, 2))
	p := image.NewPaletted(r, color.Palette{color.NRGBA{1, 2, 3, 255}, color.NRGBA{200, 100, 50, 128},
		color.NRGBA{9, 8, 7, 0}})
	for i := range p.Pix {
		p.Pix[i] = byte(rng.IntN(3))
	}
	list := []image.Image{p}
	noise := func(pix []byte) {
		for i := range pix {
			pix[i] = byte(rng.Uint32())
		}
	}
	gray, gray16, nrgba, nrgba64 := image.NewGray(r), image.NewGray16(r), image.NewNRGBA(r), image.NewNRGBA64(r)
	noise(gray.Pix)
	noise(gray16.Pix)
	noise(nrgba.Pix)
	noise(nrgba64.Pix)
	opaque := image.NewNRGBA(r)
	noise(opaque.Pix)
	for i := 3; i < len(opaque.Pix); i += 4 {
		opaque.Pix[i] = 255
	}
	return append(list, gray, gray16, nrgba, nrgba64, opaque)
}

// A large image that is converted by rows has the pixels of one that is converted at once, in any rectangle.
func TestConvertedByRows(t *testing.T) {
	const w, h = 700, 431
	for _, m := range imagesOf(w, h) {
		var file bytes.Buffer
		require.NoError(t, stdpng.Encode(&file, m))
		c, err := ReadConfig(file.Bytes())
		require.NoError(t, err)
		decoded, err := pngDecode(c, file.Bytes())
		require.NoError(t, err)
		for _, opt := range []Options{{}, {Color: Gray}, {Alpha: OnWhite}, {Color: Gray, Alpha: OnWhite}} {
			name := fmt.Sprintf("%T %+v", decoded, opt)
			blend := c.Transparent && opt.Alpha != DropAlpha
			whole, err := New(opt).Open(file.Bytes())
			require.NoError(t, err)
			rows := New(opt).byRows(decoded, blend)
			for _, r := range []image.Rectangle{image.Rect(0, 0, w, h), image.Rect(13, 7, 600, 430),
				image.Rect(699, 0, 700, 431), image.Rect(0, 430, 3, 431)} {
				if !bytes.Equal(scanned(t, rows, r), scanned(t, whole, r)) {
					t.Errorf("%s: %v differs", name, r)
				}
			}
			if _, _, got := rows.Size(); got != map[Color]int{RGB: 3, Gray: 1}[opt.Color] {
				t.Errorf("%s: %d channels", name, got)
			}
		}
	}
}

// scanned returns the pixels of a rectangle.
func scanned(t *testing.T, src pixel.Source, r image.Rectangle) (pix []byte) {
	t.Helper()
	next := r.Min.Y
	err := src.Scan(r, func(y int, strip pixel.Image) error {
		if y != next || strip.W != r.Dx() {
			t.Errorf("row %d, want %d", y, next)
		}
		next += strip.H
		for i := range strip.H {
			for x := range strip.W {
				pix = append(pix, strip.Pix[i*strip.Stride+x*strip.Step:][:strip.C]...)
			}
		}
		return nil
	})
	if err != nil || next != r.Max.Y {
		t.Errorf("up to row %d of %v, %v", next, r, err)
	}
	return pix
}

// The pixels of a large PNG are in memory once: the file of a bomb is small.
func TestMemoryOfLargePNG(t *testing.T) {
	const side = 2500
	for name, m := range map[string]image.Image{"gray": image.NewGray(image.Rect(0, 0, side, side)), "rgb": opaque(side)} {
		var file bytes.Buffer
		require.NoError(t, stdpng.Encode(&file, m))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		src, err := New(Options{}).Open(file.Bytes())
		if err == nil {
			err = src.Scan(image.Rect(0, 0, side, side), func(int, pixel.Image) error { return nil })
		}
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		pixels := uint64(side * side * map[string]int{"gray": 1, "rgb": 4}[name])
		if took := after.TotalAlloc - before.TotalAlloc; took > pixels+2<<20 {
			t.Errorf("%s: %d bytes for %d of pixels", name, took, pixels)
		}
	}
}

func opaque(side int) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	return m
}
