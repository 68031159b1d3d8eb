package decode

import (
	"image"

	"github.com/penstock/penstock/transforms"
)

// stripRows is how many rows a strip has: few enough to stay in the first-level cache of
// the CPU together with what reads them.
const stripRows = 8

// plane holds the samples of one JPEG component.
type plane struct {
	pix    []byte
	stride int
	w, h   int // true samples, without the padding to whole blocks
	fx, fy int // output columns and rows that a sample stands for
	fancy  bool
}

// planes is a JPEG whose components are decoded but not upsampled or converted: Scan does
// that for the rows and columns asked for.
type planes struct {
	w, h  int
	c     int // channels of the output
	n     int // components: 1 or 3
	comp  [3]plane
	strip []byte
	up    [3][]byte // an upsampled row of each component
	rgbx  []byte    // a colour row on its way to gray
	sums  []uint16  // a row of vertical sums
}

// Size implements transforms.Source.
func (p *planes) Size() (w, h, c int) { return p.w, p.h, p.c }

// Scan implements transforms.Source.
func (p *planes) Scan(r image.Rectangle, f func(y int, strip transforms.Image) error) error {
	if err := checkRect(r, p.w, p.h); err != nil || r.Empty() {
		return err
	}
	s := transforms.Image{W: r.Dx(), C: p.c, Step: 1}
	if p.c == 3 {
		s.Step = 4
	}
	s.Stride = s.W * s.Step
	p.reserve(s.W, s.Stride)
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		s.H = min(stripRows, r.Max.Y-y)
		s.Pix = p.strip[:s.H*s.Stride]
		for i := range s.H {
			p.row(s.Pix[i*s.Stride:][:s.Stride], y+i, r.Min.X)
		}
		if err := f(y, s); err != nil {
			return err
		}
	}
	return nil
}

// reserve makes the row buffers large enough for rows of w pixels.
func (p *planes) reserve(w, stride int) {
	p.strip = grow(p.strip, stripRows*stride)
	for i := range p.up {
		p.up[i] = grow(p.up[i], w+8) // an upsampled row may start before and end after it
	}
	p.rgbx = grow(p.rgbx, 4*w)
	if cap(p.sums) < w+4 {
		p.sums = make([]uint16, w+4)
	}
	p.sums = p.sums[:cap(p.sums)]
}

// row writes row y from column x on, as many pixels as dst holds.
func (p *planes) row(dst []byte, y, x int) {
	if p.c == 1 && p.n == 1 {
		copy(dst, p.comp[0].pix[y*p.comp[0].stride+x:])
		return
	}
	if p.c == 1 {
		p.colour(p.rgbx[:4*len(dst)], y, x)
		rgbxToGray(dst, p.rgbx)
		return
	}
	p.colour(dst, y, x)
}

func (p *planes) colour(dst []byte, y, x int) {
	n := len(dst) / 4
	if p.n == 1 {
		grayToRGBX(dst, p.samples(0, y, x, n))
		return
	}
	yccToRGBX(dst, p.samples(0, y, x, n), p.samples(1, y, x, n), p.samples(2, y, x, n))
}

// samples returns n samples of component i in row y from column x on, at full resolution.
func (p *planes) samples(i, y, x, n int) []byte {
	c := &p.comp[i]
	if c.fx == 1 && c.fy == 1 {
		return c.pix[y*c.stride+x:][:n]
	}
	return c.upsample(p.up[i], p.sums, y, x, n)
}
