package transforms

import (
	"fmt"
	"image"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
)

// stripRows is how many rows are resized horizontally before the vertical resize reads them: few
// enough to be still in cache.
const stripRows = 16

// scan carries out one pass. Rows come from a Source, are resized horizontally into a strip and
// vertically out of it, or the other way round, and go to the sink. Only a strip of the image is in
// memory at a time, so that decoding, resizing and storing share the cache, and a large photograph
// needs no large buffer.
type scan struct {
	cache *weightCache
	strip func(y int, strip Image) error // the method rows, made once

	p    *pass
	h, v *kernel.Weights // nil for an axis that keeps its length
	area image.Rectangle // part of the input that is read, relative to p.src
	in   int             // channels of the Source
	c    int             // channels in the strip
	next int             // next output row, counted in rows of the resized image
	buf  stripBuffer
	wide rowBuffer // rows resized vertically and not yet horizontally, if that comes first
	pre  []byte    // rows after the color conversion that stands before the resize
	line []byte    // one output row
	out  sink
}

// stripBuffer holds consecutive input rows after the horizontal resize.
type stripBuffer struct {
	pix    []byte
	stride int
	first  int // row of the input, relative to p.src, that is at pix[0]
	n, max int // rows held, rows of memory
}

// rowBuffer collects rows for the kernel of the horizontal resize.
type rowBuffer struct {
	pix []byte
	n   int
}

// init sets strip to the method value s.rows, once: making a method value for each image would
// allocate.
func (s *scan) init(cache *weightCache) {
	s.cache = cache
	s.strip = s.rows
}

// run reads src and writes all of t. The row count is checked at the end: a Source that ends early
// must not leave old bytes in the batch.
func (s *scan) run(p *pass, src Source, t target) error {
	_, _, s.in = src.Size()
	s.p = p
	s.c = p.pre.channels(s.in)
	s.weigh()
	s.begin()
	s.out.begin(p, s.c, t)
	if err := src.Scan(s.area.Add(p.src.Min), s.strip); err != nil {
		return err
	}
	if s.next != p.crop.Max.Y {
		return fmt.Errorf("source ended after %d of %d output rows", s.next-p.crop.Min.Y, p.crop.Dy())
	}
	s.out.end()
	return nil
}

// weigh finds the filter weights of both axes, and which part of the input they need.
func (s *scan) weigh() {
	p := s.p
	s.h, s.v, s.area = nil, nil, p.crop
	if p.src.Dx() != p.w {
		s.h = s.cache.get(p.src.Dx(), p.w, p.crop.Min.X, p.crop.Max.X, p.filter)
		s.area.Min.X, s.area.Max.X = s.h.Inputs()
	}
	if p.src.Dy() != p.h {
		s.v = s.cache.get(p.src.Dy(), p.h, p.crop.Min.Y, p.crop.Max.Y, p.filter)
		s.area.Min.Y, s.area.Max.Y = s.v.Inputs()
	}
}

// begin sizes the scratch memory of a pass. The strip buffer holds the rows of two vertical
// filters, so that rows move to its front only now and then.
func (s *scan) begin() {
	s.next = s.p.crop.Min.Y
	if s.h == nil && s.v == nil {
		return
	}
	b := &s.buf
	b.stride = s.p.crop.Dx() * s.c
	s.line = pixel.Grow(s.line, b.stride)
	if s.verticalFirst() {
		s.line = pixel.Grow(s.line, stripRows*b.stride)
		b.stride = s.area.Dx() * s.c
		s.wide.pix, s.wide.n = pixel.Grow(s.wide.pix, stripRows*b.stride), 0
	}
	b.first, b.n, b.max = s.area.Min.Y, 0, 2*stripRows
	if s.v != nil {
		b.max += 2 * s.v.Taps()
	}
	b.pix = pixel.Grow(b.pix, b.max*b.stride)
	if s.p.pre != (colorMode{}) {
		s.pre = pixel.Grow(s.pre, stripRows*s.area.Dx()*s.c)
	}
}

// verticalFirst reports whether both axes are resized, and the vertical one first.
func (s *scan) verticalFirst() bool { return s.p.vfirst && s.h != nil && s.v != nil }

// rows receives a strip of rows from the Source.
func (s *scan) rows(y int, strip Image) error {
	y -= s.p.src.Min.Y
	if err := s.checkStrip(y, strip); err != nil {
		return err
	}
	if s.h == nil && s.v == nil {
		if s.out.rows(s.next-s.p.crop.Min.Y, strip) {
			s.next += strip.H
			return nil
		}
		for i := range strip.H {
			s.out.row(s.next-s.p.crop.Min.Y, strip.Row(i), strip.Step)
			s.next++
		}
		return nil
	}
	for i := 0; i < strip.H; {
		n := min(strip.H-i, stripRows)
		s.fill(strip.Sub(image.Rect(0, i, strip.W, i+n)))
		s.drain()
		i += n
	}
	return nil
}

// checkStrip returns an error for a strip that was not asked for. Decoders are not trusted here: a
// wrong size would read beyond the strip.
func (s *scan) checkStrip(y int, strip Image) error {
	if err := strip.Validate(); err != nil {
		return fmt.Errorf("source delivered an %w", err)
	}
	want := s.next
	if s.h != nil || s.v != nil {
		want = s.buf.first + s.buf.n
	}
	if y != want || strip.W != s.area.Dx() || strip.C != s.in || y+strip.H > s.area.Max.Y {
		return fmt.Errorf("source delivered rows %d to %d, %d pixels of %d channels; asked for rows %d to %d, %d pixels of "+
			"%d channels",
			y, y+strip.H, strip.W, strip.C, want, s.area.Max.Y, s.area.Dx(), s.in)
	}
	return nil
}

// fill appends rows to the strip buffer. They are resized horizontally on the way, unless the
// vertical resize comes first.
func (s *scan) fill(m Image) {
	if s.p.pre != (colorMode{}) {
		m = s.recolor(m)
	}
	b := &s.buf
	to := b.pix[b.n*b.stride:]
	if s.h != nil && !s.verticalFirst() {
		s.h.Rows(to, b.stride, m.Pix, m.Stride, m.H, m.Step, s.c, s.area.Min.X)
	} else {
		for i := range m.H {
			kernel.Pack(to[i*b.stride:(i+1)*b.stride], m.Row(i), m.Step, s.c)
		}
	}
	b.n += m.H
}

// recolor converts rows before they are resized.
func (s *scan) recolor(m Image) Image {
	out := pixel.Of(s.pre, m.W, m.H, s.c)
	for i := range m.H {
		s.p.pre.convert(out.Row(i), m.Row(i), m.Step, m.C)
	}
	return out
}

// drain makes all output rows whose input rows are in the buffer, and drops input rows that no
// later output needs.
func (s *scan) drain() {
	b := &s.buf
	if s.v == nil {
		for i := range b.n {
			s.out.row(s.next-s.p.crop.Min.Y, b.pix[i*b.stride:(i+1)*b.stride], s.c)
			s.next++
		}
		b.first, b.n = b.first+b.n, 0
		return
	}
	for s.next < s.v.To {
		lo, hi := s.v.Span(s.next)
		if hi > b.first+b.n {
			b.keepFrom(lo)
			return
		}
		s.vertical()
		s.next++
	}
	b.keepFrom(b.first + b.n)
}

// vertical makes output row s.next. A row that needs no further work is written to its final place
// directly.
func (s *scan) vertical() {
	if s.verticalFirst() {
		s.verticalThenHorizontal()
		return
	}
	y := s.next - s.p.crop.Min.Y
	if to := s.out.direct(y); to != nil {
		s.v.Column(to, s.buf.pix, s.buf.stride, s.next, s.buf.first)
		return
	}
	s.v.Column(s.line, s.buf.pix, s.buf.stride, s.next, s.buf.first)
	s.out.row(y, s.line, s.c)
}

// verticalThenHorizontal makes output row s.next at the width of the input. It collects stripRows
// such rows, and resizes them horizontally together: the kernel works on several rows at once.
func (s *scan) verticalThenHorizontal() {
	wide, n := s.buf.stride, s.p.crop.Dx()*s.c
	s.v.Column(s.wide.pix[s.wide.n*wide:][:wide], s.buf.pix, wide, s.next, s.buf.first)
	if s.wide.n++; s.wide.n < stripRows && s.next+1 < s.v.To {
		return
	}
	s.h.Rows(s.line, n, s.wide.pix, wide, s.wide.n, s.c, s.c, s.area.Min.X)
	first := s.next - s.p.crop.Min.Y + 1 - s.wide.n
	for i := range s.wide.n {
		s.out.row(first+i, s.line[i*n:(i+1)*n], s.c)
	}
	s.wide.n = 0
}

// keepFrom makes room for stripRows more rows by dropping rows before lo. While there is room,
// nothing moves.
func (b *stripBuffer) keepFrom(lo int) {
	drop := min(max(lo-b.first, 0), b.n)
	if drop == 0 || b.n+stripRows <= b.max && drop < b.n {
		return
	}
	copy(b.pix, b.pix[drop*b.stride:b.n*b.stride])
	b.first += drop
	b.n -= drop
}
