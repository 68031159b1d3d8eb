package imagefile

import "image/color"

// The functions here convert one row: dst decides how many pixels.

func grayToRGBX(dst, src []byte) {
	src = src[:len(dst)/4]
	for i, v := range src {
		p := dst[4*i : 4*i+4 : 4*i+4]
		p[0], p[1], p[2], p[3] = v, v, v, 255
	}
}

// gray16ToRGBX keeps the high bytes of big-endian samples.
func gray16ToRGBX(dst, src []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		v := src[i/2]
		dst[i], dst[i+1], dst[i+2], dst[i+3] = v, v, v, 255
	}
}

// highBytes keeps the high byte of each big-endian 16-bit sample.
func highBytes(dst, src []byte) {
	for i := range dst {
		dst[i] = src[2*i]
	}
}

func paletteToRGBX(dst, src []byte, palette *[256][4]byte) {
	src = src[:len(dst)/4]
	for i, v := range src {
		copy(dst[4*i:4*i+4], palette[v][:])
	}
}

// unpremultiply divides color by alpha with Pillow's rounding (Unpack.c, unpackRGBa).
func unpremultiply(dst []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		a := int(dst[i+3])
		if a == 255 || a == 0 {
			continue
		}
		for k := i; k < i+3; k++ {
			dst[k] = byte(min(int(dst[k])*255/a, 255))
		}
	}
}

// cmykToRGBX is Pillow's cmyk2rgb (Convert.c), where 255 of a channel is full ink.
func cmykToRGBX(dst, src []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		white := 255 - int(src[i+3])
		for k := i; k < i+3; k++ {
			t := int(src[k])*white + 128
			dst[k] = byte(max(0, white-(t>>8+t)>>8))
		}
		dst[i+3] = 255
	}
}

// blackPalette makes all entries opaque and black.
func (d *Decoder) blackPalette() {
	for i := range d.palette {
		d.palette[i] = [4]byte{3: 255}
	}
}

// setPalette fills the table of a Paletted image; entries that the image has not are black.
func (d *Decoder) setPalette(p color.Palette) {
	d.blackPalette()
	for i, c := range p[:min(len(p), 256)] {
		n, ok := c.(color.NRGBA)
		if !ok {
			n = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		d.palette[i] = [4]byte{n.R, n.G, n.B, n.A}
	}
}

// adobeToRGBX converts CMYK as JPEG files hold it, inverted, in place. Pillow takes every
// four-component JPEG for such a one.
func adobeToRGBX(row []byte) {
	for i := range row {
		row[i] = ^row[i]
	}
	cmykToRGBX(row, row)
}

// interleave makes pixels of four rows of samples.
func interleave(dst, a, b, c, d []byte) {
	for i := range a {
		p := dst[4*i : 4*i+4 : 4*i+4]
		p[0], p[1], p[2], p[3] = a[i], b[i], c[i], d[i]
	}
}

// setLast puts the inverse of k into the fourth byte of each pixel.
func setLast(dst, k []byte) {
	for i, v := range k {
		dst[4*i+3] = ^v
	}
}
