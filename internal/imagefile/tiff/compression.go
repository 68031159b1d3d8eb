package tiff

import (
	"bytes"
	stdzlib "compress/zlib"
	"errors"
	"io"

	"golang.org/x/image/ccitt"
	tifflzw "golang.org/x/image/tiff/lzw"
)

// decompress fills the buffer with the chunk.
func (d *decoder) decompress(c *chunk) error {
	p, dst, codecs := d.page, d.buf, d.codecs
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
