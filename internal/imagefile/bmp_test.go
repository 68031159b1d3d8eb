package imagefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/testkit/require"
)

// Errors of corrupt BMP files.
func TestCorruptBMP(t *testing.T) {
	masks, raw := readKind(t, "bits16-565.bmp"), indexedBMP(8, 11, 9, 200, make([]byte, 12*9))
	patch := func(data []byte, at int, v ...byte) []byte {
		data = bytes.Clone(data)
		copy(data[at:], v)
		return data
	}
	for name, c := range map[string]struct {
		data []byte
		kind error
		text string
	}{
		"cut in its header":     {raw[:50], format.ErrCorrupt, "truncated at byte 50: the file ends in the header"},
		"cut in its masks":      {masks[:60], format.ErrCorrupt, "truncated at byte 60"},
		"cut in its palette":    {raw[:90], format.ErrCorrupt, "truncated at byte 90"},
		"cut in its pixels":     {raw[:len(raw)-2], format.ErrCorrupt, "the file ends before the image does"},
		"pixels beyond the end": {patch(raw, 10, 0, 0, 0, 0x70), format.ErrCorrupt, "the file ends before the image does"},
		"a palette too large":   {patch(raw, 46, 1, 0, 1, 0), format.ErrCorrupt, "a palette of 65537 colors"},
		"2 bits":                {patch(raw, 28, 2), format.ErrUnsupported, "2 bits a pixel are not supported; convert it to PNG"},
		"a JPEG inside":         {patch(raw, 30, 4), format.ErrUnsupported, "compression 4 of 8 bits"},
		"runs":                  {patch(raw, 30, 1), format.ErrUnsupported, "compression 1 of 8 bits a pixel is not supported; convert it to PNG"},
		"odd masks":             {patch(masks, 54, 7), format.ErrUnsupported, "masks of [f807 7e0 1f] for 16 bits"},
		"odd masks of 32":       {patch(readKind(t, "bits32-masks.bmp"), 54, 7), format.ErrUnsupported, "for 32 bits"},
		"no width":              {patch(raw, 18, 0), format.ErrCorrupt, "the header says 0x9 pixels"},
		"65535 x 65535":         {patch(raw, 18, 0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0), format.ErrTooLarge, "65535x65535"},
		"within the limit":      {patch(raw, 18, 0, 0x20, 0, 0, 0, 0x20, 0, 0), format.ErrCorrupt, "the file ends before the image does"},
	} {
		_, err := openAll(t, New(Options{}), c.data)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "bmp: ") {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
}

// The last row needs no padding, the reserved bytes mean nothing, and an offset of pixels right
// after the headers means after the palette, as in Pillow.
func TestLenientBMP(t *testing.T) {
	data := indexedBMP(8, 3, 2, 200, []byte{1, 2, 3, 0, 4, 5, 6, 0})
	want, err := openAll(t, New(Options{}), data)
	require.NoError(t, err)
	for name, at := range map[string]uint32{"none": 0, "after the headers": 54} {
		odd := bytes.Clone(data[:len(data)-1])
		binary.LittleEndian.PutUint32(odd[10:], at)
		odd[6], odd[9] = 77, 88
		if got, err := openAll(t, New(Options{}), odd); err != nil || !bytes.Equal(got.pix, want.pix) {
			t.Errorf("%s: %v, or other pixels", name, err)
		}
	}
}

// indexedBMP returns a file whose palette is gray but for blue, which is never 0, and whose rows
// begin at the bottom.
func indexedBMP(bits, w, h, colors int, pixels []byte) []byte {
	b := make([]byte, 54, 54+4*colors+len(pixels))
	le := binary.LittleEndian
	copy(b, "BM")
	le.PutUint32(b[10:], uint32(54+4*colors))
	le.PutUint32(b[14:], 40)
	le.PutUint32(b[18:], uint32(w))
	le.PutUint32(b[22:], uint32(h))
	b[26], b[28] = 1, byte(bits)
	le.PutUint32(b[46:], uint32(colors))
	for i := range colors {
		b = append(b, byte(i)|128, byte(i), byte(i), 0)
	}
	return append(b, pixels...)
}

// Indices, of 8 bits and of 4; those beyond the palette are black.
func TestIndexedBMP(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bits   int
		colors int
		pixels []byte
		want   []byte // 5 x 2, from the top
	}{
		{"raw", 8, 16, []byte{1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 15, 0, 0, 0}, []byte{6, 7, 8, 9, 15, 1, 2, 3, 4, 5}},
		{"few colors", 8, 6, []byte{1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 255, 0, 0, 0}, []byte{0, 0, 0, 0, 0, 1, 2, 3, 4, 5}},
		{"nibbles", 4, 16, []byte{0x12, 0x34, 0x50, 0, 0x67, 0x89, 0xf0, 0}, []byte{6, 7, 8, 9, 15, 1, 2, 3, 4, 5}},
	} {
		m, err := openAll(t, New(Options{}), indexedBMP(tt.bits, 5, 2, tt.colors, tt.pixels))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for i, v := range tt.want {
			blue := v | 128
			if tt.colors < 16 && i < 5 {
				blue = 0
			}
			if p := m.pix[3*i:][:3]; p[0] != v || p[1] != v || p[2] != blue {
				t.Errorf("%s: pixel %d is %v, want index %d", tt.name, i, p, v)
			}
		}
	}
}
