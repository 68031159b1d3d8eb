package jpeg

import (
	"image"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
)

// stripRows is how many rows a strip has: few enough to stay in the first-level cache of
// the CPU together with the memory of their reader.
const stripRows = 8

// Source is an image in a JPEG file as a pixel.Source: decoded, upsampled and converted strip by
// strip during each Scan. Open makes it another file's image, with the same buffers. Its errors are
// the errors of package format.
type Source struct {
	dec   decoder
	gray  bool   // the caller wants one channel
	model string // the color model of the file's samples, as header.model names it
	strip []byte
	up    [4][]byte // by component: a row of samples at full resolution
	rgbx  []byte    // a row of color that becomes gray
	sums  []uint16  // scratch of plane.upsample: vertical sums of a row
}

// Open makes s the image of the file in data, with 1 or 3 channels. It checks all markers first, so
// that a truncated file is an error here and not in the middle of a Scan. data must not change
// while s is used.
func (s *Source) Open(data []byte, channels int) error {
	h, err := parse(data)
	if err != nil {
		return err
	}
	if err := h.checkEnd(data); err != nil {
		return err
	}
	if err := h.checkSize(len(data) - h.scan); err != nil {
		return err
	}
	s.gray, s.model = channels == 1, h.model()
	return s.dec.begin(&h, data)
}

// Size implements pixel.Source.
func (s *Source) Size() (w, h, c int) {
	if s.gray {
		return s.dec.h.w, s.dec.h.h, 1
	}
	return s.dec.h.w, s.dec.h.h, 3
}

// Scan implements pixel.Source. The strips are RGBX, or gray: their memory is used again for the
// next strip. The stream is decoded from the start of the file at each call.
func (s *Source) Scan(r image.Rectangle, f func(y int, strip pixel.Image) error) error {
	w, h, c := s.Size()
	if err := format.CheckRect(r, w, h); err != nil || r.Empty() {
		return err
	}
	if err := s.dec.rewind(); err != nil {
		return err
	}
	m := pixel.Image{W: r.Dx(), C: c, Step: 1}
	if c == 3 {
		m.Step = 4
	}
	m.Stride = m.W * m.Step
	s.reserve(m.W, m.Stride)
	unit := 8 * s.dec.fy
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		m.H = min(stripRows, r.Max.Y-y)
		// The triangle filter looks one sample up and down.
		last := min((y+m.H-1+s.dec.fy)/unit, s.dec.unitsY-1)
		if err := s.dec.decodeUnits(max(r.Min.Y-s.dec.fy, 0)/unit, last, r.Min.X, r.Max.X); err != nil {
			return err
		}
		m.Pix = s.strip[:m.H*m.Stride]
		for i := range m.H {
			s.row(m.Pix[i*m.Stride:][:m.Stride], y+i, r.Min.X)
		}
		if err := f(y, m); err != nil {
			return err
		}
	}
	return nil
}

// reserve makes the row buffers large enough for rows of w pixels, and the strip for rows of stride
// bytes.
func (s *Source) reserve(w, stride int) {
	s.strip = pixel.Grow(s.strip, stripRows*stride)
	for i := range s.up {
		s.up[i] = pixel.Grow(s.up[i], w+8) // an upsampled row may start before and end after it
	}
	s.rgbx = pixel.Grow(s.rgbx, 4*w)
	if cap(s.sums) < w+4 {
		s.sums = make([]uint16, w+4)
	}
	s.sums = s.sums[:cap(s.sums)]
}

// row writes row y of the image from column x on, as many pixels as dst holds. Gray of a color file
// is made of its RGB, as Pillow does, not taken from its luma.
func (s *Source) row(dst []byte, y, x int) {
	switch {
	case s.gray && s.model == "gray":
		copy(dst, s.samples(0, y, x, len(dst)))
	case s.gray:
		s.color(s.rgbx[:4*len(dst)], y, x)
		kernel.Gray(dst, s.rgbx, 4)
	default:
		s.color(dst, y, x)
	}
}

// color writes row y from column x on to dst, as RGBX. Adobe's CMYK is stored inverted, and so is
// YCCK: YCCK is converted as if it were YCbCr, and the RGB that results is inverted CMY.
func (s *Source) color(dst []byte, y, x int) {
	n := len(dst) / 4
	a := s.samples(0, y, x, n)
	if s.model == "gray" {
		pixel.FromGray(dst, a)
		return
	}
	b, c := s.samples(1, y, x, n), s.samples(2, y, x, n)
	switch s.model {
	case "ycbcr":
		yccToRGBX(dst, a, b, c)
	case "rgb":
		pixel.Interleave(dst, a, b, c, a)
	case "cmyk":
		pixel.Interleave(dst, a, b, c, s.samples(3, y, x, n))
		pixel.InvertedCMYK(dst)
	case "ycck": // its RGB is inverted CMY
		yccToRGBX(dst, a, b, c)
		pixel.SetLast(dst, s.samples(3, y, x, n))
		pixel.FromCMYK(dst, dst)
	}
}

// samples returns n samples of component i in row y from column x on, at full resolution.
func (s *Source) samples(i, y, x, n int) []byte {
	c := &s.dec.comp[i]
	if c.plane.fx == 1 && c.plane.fy == 1 {
		return c.plane.row(y)[x:][:n]
	}
	return c.plane.upsample(s.up[i], s.sums, y, x, n)
}
