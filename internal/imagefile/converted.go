package imagefile

import (
	"image"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
)

// An image of more than wholeBytes is converted in strips of about stripBytes.
const (
	wholeBytes = 8 << 20   // bytes of pixels that are converted at once, into memory that is kept
	stripBytes = 256 << 10 // fits into a core's cache
)

// converted is a library's image as a Source that converts some rows at a time. A file of half a
// megabyte can have gigabytes of pixels: the library has them in memory once, and a converted copy
// of all rows would take the memory a second time.
type converted struct {
	d     *Decoder
	row   func(dst []byte, y int)
	w, h  int
	blend bool
}

// byRows returns a Source that converts m by rows, or nil for a type that cannot be converted so.
func (d *Decoder) byRows(m image.Image, blend bool) pixel.Source {
	if p, ok := m.(*image.Paletted); ok && p.Palette != nil { // gifDecode has set the table already
		d.palette.Set(p.Palette)
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

// Scan implements pixel.Source. A strip is valid until f returns.
func (s *converted) Scan(r image.Rectangle, f func(y int, strip pixel.Image) error) error {
	if err := format.CheckRect(r, s.w, s.h); err != nil || r.Empty() {
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

// strip returns the columns of r of n rows that were converted into pix.
func (s *converted) strip(pix []byte, r image.Rectangle, n int) pixel.Image {
	if s.blend {
		pixel.Over(pix, s.d.opt.Alpha.background())
	}
	if s.d.opt.Color == RGB {
		return pixel.Image{Pix: pix[r.Min.X*4:], W: r.Dx(), H: n, C: 3, Step: 4, Stride: s.w * 4}
	}
	s.d.gray = pixel.Grow(s.d.gray, n*s.w)
	kernel.Gray(s.d.gray, pix, 4)
	return pixel.Image{Pix: s.d.gray[r.Min.X:], W: r.Dx(), H: n, C: 1, Step: 1, Stride: s.w}
}
