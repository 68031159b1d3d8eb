package imagefile

import (
	"image"

	"github.com/penstock/penstock/internal/imagefile/format"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
)

// raster is a decoded image as a Source. Scan passes the whole rectangle as one strip.
type raster struct{ image pixel.Image }

// Size implements pixel.Source.
func (s *raster) Size() (w, h, c int) { return s.image.W, s.image.H, s.image.C }

// Scan implements pixel.Source.
func (s *raster) Scan(r image.Rectangle, f func(y int, strip pixel.Image) error) error {
	if err := format.CheckRect(r, s.image.W, s.image.H); err != nil || r.Empty() {
		return err
	}
	strip := s.image
	strip.Pix = s.image.Pix[r.Min.Y*s.image.Stride+r.Min.X*s.image.Step:]
	strip.W, strip.H = r.Dx(), r.Dy()
	return f(r.Min.Y, strip)
}

// set makes the Decoder's raster the image of w by h pixels in pix, whose rows are stride bytes
// apart. A pixel has step bytes: 1 for gray, 4 for colors, of which the fourth is not used.
func (d *Decoder) set(pix []byte, w, h, step, stride int) *raster {
	c := 3
	if step == 1 {
		c = 1
	}
	d.raster = raster{pixel.Image{Pix: pix, W: w, H: h, C: c, Step: step, Stride: stride}}
	return &d.raster
}

// fromImage returns a library's image as a Source with the channels that were asked for. Pixels
// that already have the right form are not copied.
func (d *Decoder) fromImage(c format.Config, m image.Image) (pixel.Source, error) {
	r := m.Bounds()
	w, h := r.Dx(), r.Dy()
	if g, ok := m.(*image.Gray); ok && d.opt.Color == Gray {
		return d.set(g.Pix[g.PixOffset(r.Min.X, r.Min.Y):], w, h, 1, g.Stride), nil
	}
	blend := c.Transparent && d.opt.Alpha != DropAlpha
	if n, ok := m.(*image.NRGBA); ok && d.opt.Color == RGB && !blend {
		return d.set(n.Pix[n.PixOffset(r.Min.X, r.Min.Y):], w, h, 4, n.Stride), nil
	}
	if w*h*4 > wholeBytes {
		if src := d.byRows(m, blend); src != nil {
			return src, nil
		}
	}
	d.pix = pixel.Grow(d.pix, w*h*4)
	if !d.toRGBX(d.pix, m) {
		return nil, format.Unsupported(c.Format, "pixels of type %T are not supported", m)
	}
	if blend {
		pixel.Over(d.pix, d.opt.Alpha.background())
	}
	if d.opt.Color == RGB {
		return d.set(d.pix, w, h, 4, w*4), nil
	}
	d.gray = pixel.Grow(d.gray, w*h)
	kernel.Gray(d.gray, d.pix, 4)
	return d.set(d.gray, w, h, 1, w), nil
}

// toRGBX writes m's pixels to dst: 4 bytes each, the last one alpha, without gaps between rows.
// Colors are not premultiplied. It reports whether it knows m's type.
func (d *Decoder) toRGBX(dst []byte, m image.Image) bool {
	switch m := m.(type) {
	case *image.YCbCr, *image.NYCbCrA: // of WebP; JPEG is decoded elsewhere
		return webpToRGBX(dst, m)
	case *image.Paletted:
		if m.Palette != nil { // gifDecode has set the table already
			d.palette.Set(m.Palette)
		}
	}
	row := d.rowConverter(m)
	if row == nil {
		return false
	}
	r := m.Bounds()
	for y := range r.Dy() {
		row(dst[y*r.Dx()*4:][:r.Dx()*4], r.Min.Y+y)
	}
	return true
}

// rowConverter returns a function that converts row y of m into dst, or nil for a type that it does
// not know.
func (d *Decoder) rowConverter(m image.Image) func(dst []byte, y int) {
	x := m.Bounds().Min.X
	switch m := m.(type) {
	case *image.Gray:
		return func(dst []byte, y int) { pixel.FromGray(dst, m.Pix[m.PixOffset(x, y):]) }
	case *image.Gray16:
		return func(dst []byte, y int) { pixel.FromGray16(dst, m.Pix[m.PixOffset(x, y):]) }
	case *image.Paletted:
		return func(dst []byte, y int) { pixel.FromPalette(dst, m.Pix[m.PixOffset(x, y):], &d.palette) }
	case *image.NRGBA:
		return func(dst []byte, y int) { copy(dst, m.Pix[m.PixOffset(x, y):]) }
	case *image.RGBA:
		return func(dst []byte, y int) {
			copy(dst, m.Pix[m.PixOffset(x, y):])
			pixel.Unpremultiply(dst)
		}
	case *image.NRGBA64:
		return func(dst []byte, y int) { pixel.HighBytes(dst, m.Pix[m.PixOffset(x, y):]) }
	case *image.RGBA64:
		return func(dst []byte, y int) {
			pixel.HighBytes(dst, m.Pix[m.PixOffset(x, y):])
			pixel.Unpremultiply(dst)
		}
	case *image.CMYK:
		return func(dst []byte, y int) { pixel.FromCMYK(dst, m.Pix[m.PixOffset(x, y):]) }
	}
	return nil
}
