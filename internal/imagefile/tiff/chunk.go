package tiff

import (
	"bytes"
	stdzlib "compress/zlib"
	"errors"
	"io"
	"math/bits"

	"golang.org/x/image/ccitt"
	tifflzw "golang.org/x/image/tiff/lzw"
)

// chunk is a strip or tile: where it is in the image, and in the file.
type chunk struct {
	x, y, plane int
	w, h        int // as stored
	raw         []byte
}

// chunkAt returns chunk i, in the order of the file.
func (p *Page) chunkAt(i int) (c chunk, err error) {
	each := p.across * p.down
	c.plane, i = i/each, i%each
	c.x, c.y, c.w, c.h = i%p.across*p.chunkW, i/p.across*p.chunkH, p.chunkW, p.chunkH
	if !p.tiled {
		c.h = min(c.h, p.Height-c.y)
	}
	return c, p.locate(&c, c.plane*each+i)
}

// locate finds the bytes of chunk i. Some writers leave out the length of a single strip.
func (p *Page) locate(c *chunk, i int) error {
	offsets, counts := p.dir[tagStripOffsets], p.dir[tagStripCounts]
	if p.tiled {
		offsets, counts = p.dir[tagTileOffsets], p.dir[tagTileCounts]
		if offsets.count == 0 {
			offsets, counts = p.dir[tagStripOffsets], p.dir[tagStripCounts]
		}
	}
	if i >= offsets.count || i >= counts.count && counts.count > 0 {
		return malformed("truncated: the directory names %d strips or tiles, and the image needs more", min(offsets.count, counts.count))
	}
	at := uint64(p.integer(offsets, i))
	n := uint64(len(p.data)) - min(at, uint64(len(p.data)))
	if counts.count > 0 {
		n = uint64(p.integer(counts, i))
	}
	if c.raw = p.at(at, n); c.raw == nil || n == 0 {
		return malformed("truncated: strip or tile %d of %d bytes lies behind the end of the file", i, n)
	}
	if p.reversed && p.compression != jpeg {
		c.raw = reverseBits(c.raw)
	}
	return nil
}

func reverseBits(b []byte) []byte {
	out := make([]byte, len(b))
	for i, v := range b {
		out[i] = bits.Reverse8(v)
	}
	return out
}

// rowBytes returns the bytes of a row of w pixels as stored.
func (p *Page) rowBytes(w int) int { return (w*p.samplesOf()*p.Bits + 7) / 8 }

// size returns the bytes of a chunk once it is decompressed.
func (p *Page) size(c *chunk) int {
	if p.Model == "ycbcr" && p.compression != jpeg {
		sx, sy := p.sub[0], p.sub[1]
		return (c.w + sx - 1) / sx * ((c.h + sy - 1) / sy) * (sx*sy + 2)
	}
	return p.rowBytes(c.w) * c.h
}

// decompress fills dst with the chunk.
func (p *Page) decompress(dst []byte, c *chunk, codecs Codecs) error {
	var r io.Reader
	switch p.compression {
	case none:
		r = bytes.NewReader(c.raw)
	case packBits:
		return unpackBits(dst, c.raw)
	case lzw:
		if len(c.raw) > 1 && c.raw[0] == 0 && c.raw[1]&1 != 0 {
			return unsupported(rewrite, "its compression is LZW as written before TIFF 6")
		}
		z := tifflzw.NewReader(bytes.NewReader(c.raw), tifflzw.MSB, 8)
		defer z.Close()
		r = z
	case deflate, zlib:
		z, err := stdzlib.NewReader(bytes.NewReader(c.raw))
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	case group3, group4:
		format := ccitt.Group3
		if p.compression == group4 {
			format = ccitt.Group4
		}
		r = ccitt.NewReader(bytes.NewReader(c.raw), ccitt.MSB, format, c.w, c.h, &ccitt.Options{Invert: true})
	case zstd:
		if codecs.Zstd == nil {
			return unsupported(rewrite, "its compression is zstd, which is read only where pixels are stored")
		}
		if err := codecs.Zstd(dst, c.raw); err != nil {
			return FormatError(err.Error())
		}
		return nil
	}
	if _, err := io.ReadFull(r, dst); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return malformed("truncated: the strip or tile at row %d ends before its pixels do", c.y)
		}
		return err
	}
	return nil
}

// unpackBits decodes PackBits (TIFF 6.0 section 9).
func unpackBits(dst, src []byte) error {
	for len(dst) > 0 {
		if len(src) < 2 {
			return malformed("truncated: a strip or tile ends before its pixels do")
		}
		n := int(int8(src[0]))
		switch {
		case n == -128:
			src = src[1:]
		case n >= 0:
			k := copy(dst, src[1:min(n+2, len(src))])
			dst, src = dst[k:], src[min(n+2, len(src)):]
		default:
			k := min(1-n, len(dst))
			for i := range k {
				dst[i] = src[1]
			}
			dst, src = dst[k:], src[2:]
		}
	}
	return nil
}
