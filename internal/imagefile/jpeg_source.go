package imagefile

import (
	"image"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
)

// stripRows is how many rows a strip has: few enough to stay in the first-level cache of
// the CPU together with what reads them.
const stripRows = 8

// keptUnits is how many rows of units a plane holds: a strip needs three of them at most.
const keptUnits = 4

// plane holds the samples of one JPEG component that were decoded last.
type plane struct {
	pix    []byte
	stride int
	held   int // rows in pix: row y is where row y+held will be
	w, h   int // true samples, without the padding to whole blocks
	fx, fy int // output columns and rows that a sample stands for
	fancy  bool
}

// jpegSource is a JPEG that is decoded, upsampled and converted while it is scanned: up to
// the last row asked for, and of rows and columns not asked for only what others need.
type jpegSource struct {
	jpegDecoder
	gray  bool // one channel is wanted
	model string
	strip []byte
	up    [4][]byte // an upsampled row of each component
	rgbx  []byte    // a color row on its way to gray
	sums  []uint16  // a row of vertical sums
}

// openScans opens a JPEG whose header is h.
func (d *Decoder) openScans(h *jpegHeader, data []byte) (pixel.Source, error) {
	s := &d.jpeg
	s.gray, s.model = d.opt.Color == Gray, h.model()
	if err := s.begin(h, data); err != nil {
		return nil, err
	}
	return s, nil
}

// Size implements pixel.Source.
func (s *jpegSource) Size() (w, h, c int) {
	if s.gray {
		return s.h.w, s.h.h, 1
	}
	return s.h.w, s.h.h, 3
}

// Scan implements pixel.Source.
func (s *jpegSource) Scan(r image.Rectangle, f func(y int, strip pixel.Image) error) error {
	w, h, c := s.Size()
	if err := checkRect(r, w, h); err != nil || r.Empty() {
		return err
	}
	if err := s.rewind(); err != nil {
		return err
	}
	m := pixel.Image{W: r.Dx(), C: c, Step: 1}
	if c == 3 {
		m.Step = 4
	}
	m.Stride = m.W * m.Step
	s.reserve(m.W, m.Stride)
	unit := 8 * s.fy
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		m.H = min(stripRows, r.Max.Y-y)
		// The triangle filter looks one sample up and down.
		last := min((y+m.H-1+s.fy)/unit, s.unitsY-1)
		if err := s.decodeUnits(max(r.Min.Y-s.fy, 0)/unit, last, r.Min.X, r.Max.X); err != nil {
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

// reserve makes the row buffers large enough for rows of w pixels.
func (s *jpegSource) reserve(w, stride int) {
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

// row writes row y from column x on, as many pixels as dst holds.
func (s *jpegSource) row(dst []byte, y, x int) {
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

func (s *jpegSource) color(dst []byte, y, x int) {
	n := len(dst) / 4
	a := s.samples(0, y, x, n)
	if s.model == "gray" {
		grayToRGBX(dst, a)
		return
	}
	b, c := s.samples(1, y, x, n), s.samples(2, y, x, n)
	switch s.model {
	case "ycbcr":
		yccToRGBX(dst, a, b, c)
	case "rgb":
		interleave(dst, a, b, c, a)
	case "cmyk":
		interleave(dst, a, b, c, s.samples(3, y, x, n))
		adobeToRGBX(dst)
	case "ycck": // its RGB is inverted CMY
		yccToRGBX(dst, a, b, c)
		setLast(dst, s.samples(3, y, x, n))
		cmykToRGBX(dst, dst)
	}
}

// samples returns n samples of component i in row y from column x on, at full resolution.
func (s *jpegSource) samples(i, y, x, n int) []byte {
	c := &s.comp[i]
	if c.fx == 1 && c.fy == 1 {
		return c.row(y)[x:][:n]
	}
	return c.upsample(s.up[i], s.sums, y, x, n)
}

// A unitBlock is one of the blocks in a unit of a sequential scan: how it is coded, and where
// it goes. Its place moves on with each unit.
type unitBlock struct {
	coefs  []int16 // 64 for each block of the component, which are zero
	any    []bool  // which blocks have more than a first coefficient
	dc, ac *huffTable
	pred   *int32 // the component's last first coefficient
	place  int    // of the block in the next unit, among those of the component
	step   int    // blocks from a unit to the next
}

// done ends the block of a unit whose other coefficients are decoded.
func (b *unitBlock) done(any bool) {
	b.coefs[64*b.place] = int16(*b.pred)
	b.any[b.place] = any
	b.place += b.step
}

// units decodes units of blocks, at least one of either. It returns false if the bits are no
// code or a run leads out of a block.
func (r *bitReader) units(blocks []unitBlock, units int) bool {
	if ok, done := r.unitsFast(blocks, units); done {
		return ok
	}
	for range units {
		for i := range blocks {
			if !r.sequential(&blocks[i]) {
				return false
			}
		}
	}
	return true
}

// sequential decodes one block.
func (r *bitReader) sequential(b *unitBlock) bool {
	diff, ok := r.difference(b.dc)
	if !ok {
		return false
	}
	*b.pred += diff
	any, ok := r.block((*[64]int16)(b.coefs[64*b.place:]), b.ac)
	if !ok {
		return false
	}
	b.done(any)
	return true
}
