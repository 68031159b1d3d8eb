package tiff

import (
	"math/bits"
)

// chunk is a strip or tile: its place in the image, its size and its bytes.
type chunk struct {
	x, y, plane int
	w, h        int // as stored: a tile at the border reaches beyond the image
	raw         []byte
}

// chunkAt returns chunk i. Chunks are numbered row by row, and plane by plane if the channels are
// in planes.
func (p *Page) chunkAt(i int) (c chunk, err error) {
	each := p.grid.across * p.grid.down
	c.plane, i = i/each, i%each
	c.x, c.y, c.w, c.h = i%p.grid.across*p.grid.chunkW, i/p.grid.across*p.grid.chunkH, p.grid.chunkW, p.grid.chunkH
	if !p.tiled {
		c.h = min(c.h, p.Height-c.y)
	}
	return c, p.locate(&c, c.plane*each+i)
}

// locate finds the bytes of chunk i. Some writers put offsets of tiles under the tags of strips,
// and some leave out the length of a single strip, which then reaches to the end of the file.
func (p *Page) locate(c *chunk, i int) error {
	offsets, counts := p.dir[tagStripOffsets], p.dir[tagStripCounts]
	if p.tiled {
		offsets, counts = p.dir[tagTileOffsets], p.dir[tagTileCounts]
		if offsets.count == 0 {
			offsets, counts = p.dir[tagStripOffsets], p.dir[tagStripCounts]
		}
	}
	if i >= offsets.count || i >= counts.count && counts.count > 0 {
		return malformed("truncated: the directory names %d strips or tiles, and the image needs more",
			min(offsets.count, counts.count))
	}
	at := uint64(p.file.integer(offsets, i))
	n := uint64(len(p.file.data)) - min(at, uint64(len(p.file.data)))
	if counts.count > 0 {
		n = uint64(p.file.integer(counts, i))
	}
	if c.raw = p.file.at(at, n); c.raw == nil || n == 0 {
		return malformed("truncated: strip or tile %d of %d bytes lies beyond the end of the file", i, n)
	}
	if p.reversed && p.compression != jpeg {
		c.raw = reverseBits(c.raw)
	}
	return nil
}

// reverseBits returns b with the bits of each byte in reverse order, for FillOrder 2.
func reverseBits(b []byte) []byte {
	out := make([]byte, len(b))
	for i, v := range b {
		out[i] = bits.Reverse8(v)
	}
	return out
}

// rowBytes returns the stored bytes of a row of w pixels: rows begin at a byte.
func (p *Page) rowBytes(w int) int { return (w*p.samplesOf()*p.Bits + 7) / 8 }

// size returns the bytes of a chunk after decompression. YCbCr is stored in units of sub[0] by
// sub[1] pixels with one sample of either chroma (TIFF 6.0 section 21).
func (p *Page) size(c *chunk) int {
	if p.Model == "ycbcr" && p.compression != jpeg {
		sx, sy := p.sub[0], p.sub[1]
		return (c.w + sx - 1) / sx * ((c.h + sy - 1) / sy) * (sx*sy + 2)
	}
	return p.rowBytes(c.w) * c.h
}
