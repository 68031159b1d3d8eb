package imagefile

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// numbers returns those of an image of two colors.
func numbers(t *testing.T, img image.Image) []byte {
	t.Helper()
	p, ok := img.(*image.Paletted)
	if !ok {
		t.Fatalf("%T", img)
	}
	var out []byte
	for y := range p.Rect.Dy() {
		out = append(out, p.Pix[y*p.Stride:][:p.Rect.Dx()]...)
	}
	return out
}

// image/png reads a file of bits, and its output is read back.
func TestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var memory, back []byte
	for range 200 {
		w, h := 1+r.IntN(40), 1+r.IntN(20)
		m := newBitmap(back, w, h)
		want := make([]byte, w*h)
		for range r.IntN(60) {
			x, y := r.IntN(w), r.IntN(h)
			m.Set(x, y)
			want[y*w+x] = 1
		}
		file, err := m.Append(nil)
		require.NoError(t, err)
		img, err := png.Decode(bytes.NewReader(file))
		require.NoError(t, err)
		if !bytes.Equal(numbers(t, img), want) {
			t.Fatalf("%dx%d: image/png reads other pixels", w, h)
		}
		var theirs bytes.Buffer
		level := []png.CompressionLevel{png.DefaultCompression, png.NoCompression, png.BestCompression}[r.IntN(3)]
		pal := &image.Paletted{Pix: want, Stride: w, Rect: image.Rect(0, 0, w, h), Palette: color.Palette{color.White, color.Black}}
		require.NoError(t, (&png.Encoder{CompressionLevel: level}).Encode(&theirs, pal))
		for _, data := range [][]byte{file, theirs.Bytes()} {
			c, err := pngConfig(data)
			require.NoError(t, err)
			got, ok := pngBits(c, data, memory)
			if !ok {
				t.Fatalf("%dx%d is not read", w, h)
			}
			memory = got.Rows
			pixels := make([]byte, w*h)
			if got.Bytes(pixels, 0, h); !bytes.Equal(pixels, want) {
				t.Fatalf("%dx%d: other pixels", w, h)
			}
			packed := newBitmap(nil, w, h)
			for y := range h {
				packed.Pack(y, want[y*w:(y+1)*w])
			}
			if !bytes.Equal(packed.Rows, got.Rows) {
				t.Fatalf("%dx%d: packed otherwise", w, h)
			}
		}
	}
}

// Rows that are differences are added up as image/png does; a file with a wrong bit is not read.
func TestBitsFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	read := 0
	for range 300 {
		w, h := 1+r.IntN(40), 1+r.IntN(20)
		m := newBitmap(nil, w, h)
		for i := range m.Rows {
			if m.Rows[i] = byte(r.IntN(256)); i%m.Stride() == 0 {
				m.Rows[i] = byte(r.IntN(6))
			}
		}
		file, err := m.Append(nil)
		require.NoError(t, err)
		c, err := pngConfig(file)
		require.NoError(t, err)
		img, wrong := png.Decode(bytes.NewReader(file))
		got, ok := pngBits(c, file, nil)
		if ok != (wrong == nil) {
			t.Fatalf("read %v, where image/png says %v", ok, wrong)
		}
		if ok {
			read++
			pixels := make([]byte, w*h)
			if got.Bytes(pixels, 0, h); !bytes.Equal(pixels, numbers(t, img)) {
				t.Fatalf("%dx%d: other pixels", w, h)
			}
		}
		file[r.IntN(len(file)-8)+8] ^= 1 << r.IntN(8)
		if c, err := pngConfig(file); err == nil {
			_, wrong := png.Decode(bytes.NewReader(file))
			if _, ok := pngBits(c, file, nil); ok && wrong != nil {
				t.Fatalf("a corrupt file is read: %v", wrong)
			}
		}
	}
	if read < 50 {
		t.Errorf("only %d files of 300 are read", read)
	}
}
