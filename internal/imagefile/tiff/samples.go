package tiff

import (
	"encoding/binary"
	"slices"
)

// Samples returns all samples as p.DType, little endian, row by row, with the channels of a pixel
// together. Photometric interpretation and orientation are not applied, except that YCbCr becomes
// RGB and JPEG is decoded to RGB or gray. Callers limit p.Bytes first; memory is allocated only
// after the first chunk was found in the file.
func (p *Page) Samples(codecs Codecs) ([]byte, error) {
	if err := p.checkWork(); err != nil {
		return nil, err
	}
	planes := 1
	if p.planar {
		planes = p.Channels
	}
	d := decoder{page: p, codecs: codecs}
	for i := range p.grid.across * p.grid.down * planes {
		c, err := p.chunkAt(i)
		if err != nil {
			return nil, err
		}
		if p.compression == none && len(c.raw) < p.size(&c) {
			return nil, malformed("truncated: the strip or tile at row %d has %d of %d bytes", c.y, len(c.raw), p.size(&c))
		}
		if d.out == nil {
			d.out = make([]byte, int(p.Bytes()))
		}
		if err := d.fill(&c); err != nil {
			return nil, err
		}
	}
	return d.out, nil
}

// checkWork refuses strips and tiles that are much larger than the image, which would be decoded
// for nothing. A single tile may be larger than a small image.
func (p *Page) checkWork() error {
	size := float64(p.samplesOf()*p.Bits) / 8
	one := float64(p.grid.chunkW) * float64(p.grid.chunkH) * size
	all := one * float64(p.grid.across) * float64(p.grid.down)
	const free = 64 << 20
	if one > free+4*p.Bytes() || all > free+64*p.Bytes() {
		return malformed("its tiles of %dx%d pixels are much larger than the image of %dx%d", p.grid.chunkW, p.grid.chunkH,
			p.Width, p.Height)
	}
	if n := max(p.dir[tagStripOffsets].count, p.dir[tagTileOffsets].count); p.grid.across > n || p.grid.down > n {
		return malformed("truncated: the directory names %d strips or tiles, and the image needs %d", n,
			p.grid.across*p.grid.down)
	}
	return nil
}

// decoder puts the chunks of a page together.
type decoder struct {
	page   *Page
	codecs Codecs
	out    []byte // samples of the page
	buf    []byte // the current chunk, decompressed
}

// fill decodes a chunk into its place in out.
func (d *decoder) fill(c *chunk) error {
	p := d.page
	if p.compression == jpeg {
		return d.fillJPEG(c)
	}
	n := p.size(c)
	d.buf = slices.Grow(d.buf[:0], n)[:n]
	if err := d.decompress(c); err != nil {
		return err
	}
	if p.Model == "ycbcr" {
		d.fillYCbCr(c)
		return nil
	}
	row := p.rowBytes(c.w)
	for y := range c.h {
		p.unpredict(d.buf[y*row:][:row])
	}
	spp, size := p.samplesOf(), p.DType.Size()
	for y := range min(c.h, p.Height-c.y) {
		w := min(c.w, p.Width-c.x)
		d.place(c, y, w, d.buf[y*row:][:row], spp, size)
	}
	return nil
}

// place copies w pixels of row y of a chunk into out.
func (d *decoder) place(c *chunk, y, w int, row []byte, spp, size int) {
	p, out := d.page, d.out
	at := ((c.y+y)*p.Width + c.x) * p.Channels * size
	if p.Bits < 8*size {
		p.unpack(out[at:], row, w*spp, size, c.plane)
		return
	}
	if !p.planar {
		copy(out[at:], row[:w*spp*size])
		return
	}
	at += c.plane * size
	for x := range w {
		copy(out[at+x*p.Channels*size:], row[x*size:][:size])
	}
}

// unpack expands n samples of fewer bits than their type; the first sample is in the highest bits.
func (p *Page) unpack(out, row []byte, n, size, plane int) {
	step := size
	if p.planar {
		step, out = p.Channels*size, out[plane*size:]
	}
	acc, have := uint32(0), 0
	for i := range n {
		for have < p.Bits {
			acc, row, have = acc<<8|uint32(row[0]), row[1:], have+8
		}
		have -= p.Bits
		v := acc >> have & (1<<p.Bits - 1)
		out[i*step] = byte(v)
		if size == 2 {
			out[i*step+1] = byte(v >> 8)
		}
	}
}

// unpredict makes a row little endian and undoes the predictor.
func (p *Page) unpredict(row []byte) {
	size := p.DType.Size()
	if p.Bits < 8*size {
		return
	}
	if p.predictor == 3 {
		unpredictFloats(row, p.samplesOf(), size)
		return
	}
	if p.file.order == binary.BigEndian {
		swap(row, size)
	}
	if p.predictor == 2 {
		accumulate(row, p.samplesOf(), size)
	}
}

// swap reverses the bytes of each element.
func swap(row []byte, size int) {
	for ; len(row) >= size && size > 1; row = row[size:] {
		slices.Reverse(row[:size])
	}
}

// accumulate undoes the horizontal predictor (TIFF 6.0 section 14): it adds to each sample the same
// channel of the pixel before.
func accumulate(row []byte, channels, size int) {
	le := binary.LittleEndian
	step := channels * size
	for i := step; i+size <= len(row); i += size {
		a, b := row[i-step:], row[i:]
		switch size {
		case 1:
			b[0] += a[0]
		case 2:
			le.PutUint16(b, le.Uint16(a)+le.Uint16(b))
		case 4:
			le.PutUint32(b, le.Uint32(a)+le.Uint32(b))
		case 8:
			le.PutUint64(b, le.Uint64(a)+le.Uint64(b))
		}
	}
}

// unpredictFloats undoes Adobe's predictor for floats (TIFF Technical Note 3): the highest bytes of
// all samples come first, then the next bytes, and so on, each as its difference from the byte
// before.
func unpredictFloats(row []byte, channels, size int) {
	for i := channels; i < len(row); i++ {
		row[i] += row[i-channels]
	}
	n := len(row) / size
	planes := slices.Clone(row)
	for i := range n {
		for b := range size {
			row[i*size+b] = planes[(size-1-b)*n+i]
		}
	}
}
