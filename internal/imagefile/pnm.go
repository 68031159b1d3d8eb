package imagefile

import (
	"image"
	"math"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// picture is a file of the Netpbm family: bits, gray or colors, in decimal (P1, P2, P3) or in bytes
// (P4, P5, P6). https://netpbm.sourceforge.net/doc/pnm.html. rest has the bytes that were not read
// yet.
type picture struct {
	kind byte // the second character of the file, '1' to '6'
	w, h int
	most int // the sample of white; 1 for bits
	rest []byte
	at   int // offset of rest in the file
}

// pnmIs reports whether a file begins with a magic number, a blank, and then a number or a comment:
// text rarely begins with all three.
func pnmIs(head []byte) bool {
	if len(head) < 4 || head[0] != 'P' || head[1] < '1' || head[1] > '6' || !isSpace(head[2]) {
		return false
	}
	for _, c := range head[3:] {
		if !isSpace(c) {
			return c == '#' || c >= '0' && c <= '9'
		}
	}
	return false
}

// isSpace reports whether c is white space in the sense of Netpbm.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// pnmParse reads the header. It compares the size in the header with the number of bytes in the
// file, so that no memory is allocated for pixels that cannot be there.
func pnmParse(data []byte) (p picture, err error) {
	p = picture{kind: data[1], most: 1, rest: data[2:], at: 2}
	for _, to := range []*int{&p.w, &p.h, &p.most} {
		if to == &p.most && p.bits() {
			continue
		}
		if *to, err = p.number(math.MaxInt32); err != nil {
			return p, err
		}
	}
	if p.most < 1 || p.most > 65535 {
		return p, format.Corrupt(format.PNM, "the header says that white is %d, not 1 to 65535", p.most)
	}
	if !p.decimal() {
		p.take(1) // exactly one blank, since the next byte is a sample, whatever it is
	}
	need, ok := p.size()
	if !ok || need > uint64(len(p.rest)) {
		return p, format.Corrupt(format.PNM, "truncated at byte %d: the file ends before the image does", len(data))
	}
	return p, nil
}

// bits reports whether samples are bits, for which the header has no value of white.
func (p *picture) bits() bool { return p.kind == '1' || p.kind == '4' }

// decimal reports whether samples are written in decimal.
func (p *picture) decimal() bool { return p.kind <= '3' }

// channels returns the number of samples of a pixel.
func (p *picture) channels() int {
	if p.kind == '3' || p.kind == '6' {
		return 3
	}
	return 1
}

// size returns the smallest number of bytes that the samples can take, or false if that overflows.
func (p *picture) size() (n uint64, ok bool) {
	row := uint64(p.w) * uint64(p.channels())
	switch {
	case p.kind == '4':
		row = (row + 7) / 8
	case p.kind == '2' || p.kind == '3' || p.most > 255:
		row *= 2 // a digit and a blank, or two bytes
	}
	n = row * uint64(p.h)
	if p.decimal() && n > 0 && p.kind != '1' {
		n-- // no blank is needed after the last sample
	}
	return n, row == 0 || uint64(p.h) <= math.MaxUint64/row
}

// take skips n bytes.
func (p *picture) take(n int) {
	n = min(n, len(p.rest))
	p.rest, p.at = p.rest[n:], p.at+n
}

// blank skips white space and comments.
func (p *picture) blank() {
	for len(p.rest) > 0 {
		switch c := p.rest[0]; {
		case isSpace(c):
			p.take(1)
		case c == '#':
			for len(p.rest) > 0 && p.rest[0] != '\n' && p.rest[0] != '\r' {
				p.take(1)
			}
		default:
			return
		}
	}
}

// number reads a decimal number of at most `most`.
func (p *picture) number(most int) (n int, err error) {
	p.blank()
	digits := 0
	for ; digits < len(p.rest) && p.rest[digits] >= '0' && p.rest[digits] <= '9'; digits++ {
		if n = n*10 + int(p.rest[digits]-'0'); n > most {
			return 0, format.Corrupt(format.PNM, "the number at byte %d is larger than %d", p.at, most)
		}
	}
	switch {
	case len(p.rest) == 0:
		return 0, format.Corrupt(format.PNM, "truncated at byte %d: the file ends before the image does", p.at)
	case digits == 0:
		return 0, format.Corrupt(format.PNM, "byte %d is not a digit, where a number is to be", p.at)
	}
	p.take(digits)
	return n, nil
}

// config returns the properties that the header gives.
func (p *picture) config() format.Config {
	c := format.Config{Width: p.w, Height: p.h, Model: "gray", Channels: p.channels(), Bits: 8}
	switch {
	case p.bits():
		c.Bits = 1
	case p.most > 255:
		c.Bits = 16
	}
	if c.Channels == 3 {
		c.Model = "rgb"
	}
	return c
}

// pnmConfig reads the header of a picture.
func pnmConfig(data []byte) (format.Config, error) {
	p, err := pnmParse(data)
	return p.config(), err
}

// pnmDecode decodes a picture. A sample is scaled to 0 to 255 and rounded to the nearest number,
// halves to even, as in Pillow, which however clips gray samples of more than 8 bits.
func pnmDecode(data []byte) (image.Image, error) {
	p, err := pnmParse(data)
	if err != nil {
		return nil, err
	}
	next, r := p.reader(), image.Rect(0, 0, p.w, p.h)
	if p.channels() == 1 {
		m := image.NewGray(r)
		for i := range m.Pix {
			if m.Pix[i], err = next(i % p.w); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	m := image.NewNRGBA(r)
	for i := range m.Pix {
		if m.Pix[i] = 255; i%4 == 3 {
			continue
		}
		if m.Pix[i], err = next(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// reader returns a function that reads the next sample, which is in column x. Rows of packed bits
// begin at a byte.
func (p *picture) reader() func(x int) (byte, error) {
	scale := p.scale()
	switch {
	case p.kind == '1':
		return func(int) (byte, error) { return p.digit() }
	case p.kind == '4':
		return func(x int) (byte, error) {
			b := p.rest[0] << (x & 7)
			if x&7 == 7 || x == p.w-1 {
				p.take(1)
			}
			return ^byte(int8(b) >> 7), nil // a bit that is set is black
		}
	case p.decimal():
		return func(int) (byte, error) {
			n, err := p.number(p.most)
			return scale[n], err
		}
	case p.most > 255:
		return func(int) (byte, error) {
			n := int(p.rest[0])<<8 | int(p.rest[1])
			p.take(2)
			return scale[min(n, p.most)], nil
		}
	}
	return func(int) (byte, error) {
		n := int(p.rest[0])
		p.take(1)
		return scale[min(n, p.most)], nil
	}
}

// digit reads a bit that is written as a digit. No blank is needed between bits.
func (p *picture) digit() (byte, error) {
	p.blank()
	if len(p.rest) == 0 {
		return 0, format.Corrupt(format.PNM, "truncated at byte %d: the file ends before the image does", p.at)
	}
	b := p.rest[0]
	if b != '0' && b != '1' {
		return 0, format.Corrupt(format.PNM, "byte %d is neither 0 nor 1, as it is to be", p.at)
	}
	p.take(1)
	return b - '1', nil // 1 is black
}

// scale returns the byte for each value of a sample.
func (p *picture) scale() []byte {
	list := make([]byte, p.most+1)
	for i := range list {
		list[i] = byte(math.RoundToEven(float64(i) / float64(p.most) * 255))
	}
	return list
}

// pnmSamples returns the samples of a picture with 16 bits, scaled to 0 to 65535 as in Pillow,
// little endian.
func pnmSamples(data []byte) (m pixel.Raster, err error) {
	p, err := pnmParse(data)
	if err != nil {
		return m, err
	}
	m = pixel.Raster{W: p.w, H: p.h, C: p.channels(), DType: tensor.Uint16}
	m.Pix = make([]byte, 2*m.W*m.H*m.C)
	for i := range len(m.Pix) / 2 {
		n := 0
		if p.decimal() {
			if n, err = p.number(p.most); err != nil {
				return m, err
			}
		} else {
			n = min(int(p.rest[0])<<8|int(p.rest[1]), p.most)
			p.take(2)
		}
		v := uint16(math.RoundToEven(float64(n) / float64(p.most) * math.MaxUint16))
		m.Pix[2*i], m.Pix[2*i+1] = byte(v), byte(v>>8)
	}
	return m, nil
}
