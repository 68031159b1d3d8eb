package transforms

import (
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// target is the memory that a pass writes. Only the slice that belongs to dtype is set.
type target struct {
	dst    []byte
	f32    []float32
	u16    []uint16 // float16, bfloat16
	dtype  tensor.DType
	layout Layout
	norm   *kernel.Norm
}

// sink stores the rows of a pass after the resize: it changes colors, mirrors, adds borders and
// converts to the record's type. Each row is read once more while it is in cache, so that none of
// these steps is a pass over the image.
type sink struct {
	t       target
	p       *pass
	in      int // channels of the rows that arrive
	w, h    int // what is stored
	scratch [3][]byte
}

func (p *pass) outW() int { return p.crop.Dx() + p.pad[0] + p.pad[2] }
func (p *pass) outH() int { return p.crop.Dy() + p.pad[1] + p.pad[3] }

// begin prepares the sink for the rows of a pass.
func (s *sink) begin(p *pass, in int, t target) {
	s.t, s.p, s.in = t, p, in
	s.w, s.h = p.outW(), p.outH()
	for i := range s.scratch {
		s.scratch[i] = pixel.Grow(s.scratch[i], s.w*p.c)
	}
}

// direct returns the final place of row y if the row needs no work but being written, and nil
// otherwise.
func (s *sink) direct(y int) []byte {
	p := s.p
	if s.t.dtype != tensor.Uint8 || (s.t.layout != HWC && p.c != 1) || p.post != (colorMode{}) || p.flipH ||
		p.pad[0]+p.pad[2] > 0 {
		return nil
	}
	n := s.w * p.c
	return s.t.dst[s.place(y)*n:][:n]
}

// place returns the row of the record in which row y of the crop is stored.
func (s *sink) place(y int) int {
	if s.p.flipV {
		y = s.p.crop.Dy() - 1 - y
	}
	return y + s.p.pad[1]
}

// rows stores all rows of m, from row y of the crop on, in one call, if they need no work and have
// no gaps. Otherwise it returns false.
func (s *sink) rows(y int, m Image) bool {
	p := s.p
	if p.post != (colorMode{}) || p.flipH || p.flipV || p.pad != [4]int{} || m.Stride != m.W*m.Step {
		return false
	}
	s.put(y, m.H, m.Pix, m.Step)
	return true
}

// row stores row y of the crop, whose pixels are step bytes apart in px.
func (s *sink) row(y int, px []byte, step int) {
	p := s.p
	n := p.crop.Dx() * p.c
	if p.post != (colorMode{}) {
		p.post.convert(s.scratch[0][:n], px, step, s.in)
		px, step = s.scratch[0][:n], p.c
	}
	if p.flipH {
		if step != p.c {
			kernel.Pack(s.scratch[0][:n], px, step, p.c)
			px, step = s.scratch[0][:n], p.c
		}
		kernel.Reverse(s.scratch[1][:n], px[:n], p.c)
		px = s.scratch[1][:n]
	}
	if p.pad[0]+p.pad[2] > 0 {
		s.widen(s.scratch[2], px, step)
		px, step = s.scratch[2], p.c
	}
	s.put(s.place(y), 1, px, step)
}

// widen writes row px to dst with the border at both ends.
func (s *sink) widen(dst, px []byte, step int) {
	p := s.p
	c, w, left := p.c, p.crop.Dx(), p.pad[0]
	kernel.Pack(dst[left*c:(left+w)*c], px, step, c)
	for x := range left {
		s.borderPixel(dst[x*c:][:c], dst[left*c:], x-left, w)
	}
	for x := left + w; x < s.w; x++ {
		s.borderPixel(dst[x*c:][:c], dst[left*c:], x-left, w)
	}
}

// borderPixel sets a border pixel that stands at place i of a row of w pixels.
func (s *sink) borderPixel(dst, row []byte, i, w int) {
	if s.p.padMode == PadConstant {
		copy(dst, s.p.padFill[:])
		return
	}
	copy(dst, row[s.p.padMode.from(i, w)*s.p.c:])
}

// put stores rows of the record's full width, in the record's type and layout.
func (s *sink) put(y, rows int, px []byte, step int) {
	switch s.t.dtype {
	case tensor.Uint8:
		s.putBytes(y, rows, px, step)
	case tensor.Float32:
		putNumbers(s, s.t.f32, y, rows, px, step, (*kernel.Norm).F32, (*kernel.Norm).PixelsF32, (*kernel.Norm).PlanesF32)
	default:
		putNumbers(s, s.t.u16, y, rows, px, step, (*kernel.Norm).U16, (*kernel.Norm).PixelsU16, (*kernel.Norm).PlanesU16)
	}
}

// putBytes stores rows of a uint8 record.
func (s *sink) putBytes(y, rows int, px []byte, step int) {
	d := s.t.dst
	if s.t.layout == CHW && s.p.c == 3 {
		r, g, b := pixel.PlaneRows(d, y, rows, s.w, s.h)
		kernel.Planes(r, g, b, px, step)
		return
	}
	n := s.w * s.p.c
	kernel.Pack(d[y*n:(y+rows)*n], px, step, s.p.c)
}

// putNumbers is putBytes for numbers of 32 or 16 bits. The kernels of the element type are
// parameters, so that both types share the choice of the layout.
func putNumbers[T any](s *sink, d []T, y, rows int, px []byte, step int,
	plain func(*kernel.Norm, []T, []byte, int),
	pixels func(*kernel.Norm, []T, []byte, int),
	planes func(*kernel.Norm, []T, []T, []T, []byte, int),
) {
	n := s.w * s.p.c
	switch {
	case s.p.c == 1:
		plain(s.t.norm, d[y*n:(y+rows)*n], px, 0)
	case s.t.layout == HWC:
		pixels(s.t.norm, d[y*n:(y+rows)*n], px, step)
	default:
		r, g, b := pixel.PlaneRows(d, y, rows, s.w, s.h)
		planes(s.t.norm, r, g, b, px, step)
	}
}

// end adds the rows of the border. It runs last: the border repeats rows that are stored by then,
// in their final type.
func (s *sink) end() {
	top, inner := s.p.pad[1], s.p.crop.Dy()
	if top+s.p.pad[3] == 0 {
		return
	}
	if s.p.padMode == PadConstant {
		for x := range s.w {
			copy(s.scratch[2][x*s.p.c:][:s.p.c], s.p.padFill[:])
		}
	}
	for y := range s.h {
		if i := y - top; i < 0 || i >= inner {
			s.borderRow(y, i, inner)
		}
	}
}

// borderRow stores a row of the border. Unless its color is constant, it copies a stored row, which
// is converted already.
func (s *sink) borderRow(y, i, inner int) {
	if s.p.padMode == PadConstant {
		s.put(y, 1, s.scratch[2], s.p.c)
		return
	}
	from := s.p.padMode.from(i, inner) + s.p.pad[1]
	switch s.t.dtype {
	case tensor.Uint8:
		copyRow(s, s.t.dst, y, from)
	case tensor.Float32:
		copyRow(s, s.t.f32, y, from)
	default:
		copyRow(s, s.t.u16, y, from)
	}
}

// copyRow copies one row of the record to another row.
func copyRow[T any](s *sink, d []T, to, from int) {
	if s.t.layout == CHW && s.p.c == 3 {
		r, g, b := pixel.PlaneRows(d, to, 1, s.w, s.h)
		r2, g2, b2 := pixel.PlaneRows(d, from, 1, s.w, s.h)
		copy(r, r2)
		copy(g, g2)
		copy(b, b2)
		return
	}
	n := s.w * s.p.c
	copy(d[to*n:(to+1)*n], d[from*n:(from+1)*n])
}

// channels returns how many channels an image of in channels has afterwards.
func (c colorMode) channels(in int) int {
	if c.out == 0 {
		return in
	}
	return c.out
}

// convert changes the channels of one row: src has in channels, step bytes apart, and dst has no
// gaps.
func (c colorMode) convert(dst, src []byte, step, in int) {
	out := c.channels(in)
	switch {
	case in == 1 && out == 3:
		kernel.Spread(dst, src, step)
	case in == 1 || !c.gray:
		kernel.Pack(dst, src, step, out)
	case out == 1:
		kernel.Gray(dst, src, step)
	default: // the luma waits in the last third, where Spread reads it before it writes there
		n := len(dst) / 3
		kernel.Gray(dst[2*n:], src, step)
		kernel.Spread(dst, dst[2*n:], 1)
	}
}
