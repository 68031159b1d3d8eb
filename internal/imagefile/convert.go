package imagefile

import (
	"image"
	"image/color"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
)

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

const (
	wholeBytes = 8 << 20   // of pixels that are converted at once, and kept
	stripBytes = 256 << 10 // of a strip of larger images
)

// converted is a library's image as a Source that converts some rows at a time: a file of half a megabyte can have gigabytes of
// pixels, which are in memory once.
type converted struct {
	d     *Decoder
	row   func(dst []byte, y int)
	w, h  int
	blend bool
}

// byRows returns the Source of an image of a type that is converted by rows, nil for others.
func (d *Decoder) byRows(m image.Image, blend bool) pixel.Source {
	if p, ok := m.(*image.Paletted); ok && p.Palette != nil { // openGIF has its own
		d.setPalette(p.Palette)
	}
	row := d.rowConverter(m)
	if row == nil {
		return nil
	}
	r := m.Bounds()
	return &converted{d: d, row: func(dst []byte, y int) { row(dst, r.Min.Y+y) }, w: r.Dx(), h: r.Dy(), blend: blend}
}

// Size implements pixel.Source.
func (s *converted) Size() (w, h, c int) {
	if s.d.opt.Color == Gray {
		return s.w, s.h, 1
	}
	return s.w, s.h, 3
}

// Scan implements pixel.Source.
func (s *converted) Scan(r image.Rectangle, f func(y int, strip pixel.Image) error) error {
	if err := checkRect(r, s.w, s.h); err != nil || r.Empty() {
		return err
	}
	stride := s.w * 4
	rows := max(1, stripBytes/stride)
	s.d.pix = pixel.Grow(s.d.pix, rows*stride)
	for y := r.Min.Y; y < r.Max.Y; y += rows {
		n := min(rows, r.Max.Y-y)
		pix := s.d.pix[:n*stride]
		for i := range n {
			s.row(pix[i*stride:][:stride], y+i)
		}
		if err := f(y, s.strip(pix, r, n)); err != nil {
			return err
		}
	}
	return nil
}

// strip returns the columns of r in n converted rows.
func (s *converted) strip(pix []byte, r image.Rectangle, n int) pixel.Image {
	if s.blend {
		over(pix, s.d.opt.Alpha.background())
	}
	if s.d.opt.Color == RGB {
		return pixel.Image{Pix: pix[r.Min.X*4:], W: r.Dx(), H: n, C: 3, Step: 4, Stride: s.w * 4}
	}
	s.d.gray = pixel.Grow(s.d.gray, n*s.w)
	kernel.Gray(s.d.gray, pix, 4)
	return pixel.Image{Pix: s.d.gray[r.Min.X:], W: r.Dx(), H: n, C: 1, Step: 1, Stride: s.w}
}
