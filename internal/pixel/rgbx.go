package pixel

import "image/color"

// Palette is the colors of an image of bytes, the fourth byte of each being alpha.
type Palette [256][4]byte

// Black makes all entries opaque and black.
func (t *Palette) Black() {
	for i := range t {
		t[i] = [4]byte{3: 255}
	}
}

// Set fills the table of a Paletted image; entries that the image has not are black.
func (t *Palette) Set(p color.Palette) {
	t.Black()
	for i, c := range p[:min(len(p), 256)] {
		n, ok := c.(color.NRGBA)
		if !ok {
			n = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		t[i] = [4]byte{n.R, n.G, n.B, n.A}
	}
}

// The functions below convert rows of pixels to four bytes each: red, green, blue, and alpha or nothing. The length of dst
// says how many pixels.

// FromGray converts bytes of gray.
func FromGray(dst, src []byte) {
	src = src[:len(dst)/4]
	for i, v := range src {
		p := dst[4*i : 4*i+4 : 4*i+4]
		p[0], p[1], p[2], p[3] = v, v, v, 255
	}
}

// FromGray16 keeps the high bytes of big-endian samples.
func FromGray16(dst, src []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		v := src[i/2]
		dst[i], dst[i+1], dst[i+2], dst[i+3] = v, v, v, 255
	}
}

// HighBytes keeps the high byte of each big-endian 16-bit sample.
func HighBytes(dst, src []byte) {
	for i := range dst {
		dst[i] = src[2*i]
	}
}

func FromPalette(dst, src []byte, palette *Palette) {
	src = src[:len(dst)/4]
	for i, v := range src {
		copy(dst[4*i:4*i+4], palette[v][:])
	}
}

// Unpremultiply divides color by alpha with Pillow's rounding (Unpack.c, unpackRGBa).
func Unpremultiply(dst []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		a := int(dst[i+3])
		if a == 255 {
			continue
		}
		if a == 0 { // no color is left, whatever the file has
			clear(dst[i : i+4])
			continue
		}
		for k := i; k < i+3; k++ {
			dst[k] = byte(min(int(dst[k])*255/a, 255))
		}
	}
}

// FromCMYK is Pillow's cmyk2rgb (Convert.c), where 255 of a channel is full ink.
func FromCMYK(dst, src []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		white := 255 - int(src[i+3])
		for k := i; k < i+3; k++ {
			t := int(src[k])*white + 128
			dst[k] = byte(max(0, white-(t>>8+t)>>8))
		}
		dst[i+3] = 255
	}
}

// InvertedCMYK converts CMYK as JPEG files hold it, inverted, in place. Pillow takes every
// four-component JPEG for such a one.
func InvertedCMYK(row []byte) {
	for i := range row {
		row[i] = ^row[i]
	}
	FromCMYK(row, row)
}

// Interleave merges four rows of samples into pixels.
func Interleave(dst, a, b, c, d []byte) {
	for i := range a {
		p := dst[4*i : 4*i+4 : 4*i+4]
		p[0], p[1], p[2], p[3] = a[i], b[i], c[i], d[i]
	}
}

// SetLast puts the inverse of k into the fourth byte of each pixel.
func SetLast(dst, k []byte) {
	for i, v := range k {
		dst[4*i+3] = ^v
	}
}

// Over puts pixels of four bytes, the last of which is alpha, on a background: what
// img2dataset has for white, alpha/255*color + background*(1-alpha/255), to the nearest.
// No sum lies halfway between two integers, as 255 is odd.
func Over(pix []byte, background int) {
	for i := 0; i+4 <= len(pix); i += 4 {
		p := pix[i : i+4 : i+4]
		a := int(p[3])
		if a == 255 {
			continue
		}
		behind := (255-a)*background + 127
		p[0] = byte((int(p[0])*a + behind) / 255)
		p[1] = byte((int(p[1])*a + behind) / 255)
		p[2] = byte((int(p[2])*a + behind) / 255)
		p[3] = 255
	}
}
