package tiff

import (
	"bytes"
	stdzlib "compress/zlib"
	"errors"
	"io"

	"golang.org/x/image/ccitt"
	tifflzw "golang.org/x/image/tiff/lzw"
)

// decompress fills d.buf, which has the size of the chunk, with the decompressed chunk. LZW streams
// of before TIFF 6 begin with another bit order, by which they are recognized.
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
	case group3:
		return d.fax(c)
	case group4:
		r = ccitt.NewReader(bytes.NewReader(c.raw), ccitt.MSB, ccitt.Group4, c.w, c.h, &ccitt.Options{Invert: true})
	case zstd:
		if codecs.Zstd == nil {
			return unsupported(rewrite, "its compression is zstd, which is read only where pixels are stored")
		}
		if err := codecs.Zstd(dst, c.raw); err != nil {
			return FormatError(err.Error())
		}
		return nil
	}
	return c.read(r, dst)
}

// read fills dst with pixels of the chunk.
func (c *chunk) read(r io.Reader, dst []byte) error {
	_, err := io.ReadFull(r, dst)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed("truncated: the strip or tile at row %d ends before its pixels do", c.y)
	}
	return err
}

// fax decodes CCITT group 3 in one dimension (T.4), line by line. Between a line and its
// end-of-line code there may be zeros (T.4 section 4.1.3), so that the code ends with a byte, as
// Ghostscript and fax2tiff write it; package ccitt takes these zeros for a missing code. So each
// line is cut out and given to the decoder by itself. No other code has eleven zeros in a row, so
// the ends of lines are found without decoding.
func (d *decoder) fax(c *chunk) error {
	const eol = 11 // zeros before the 1 of an end-of-line code
	row, zeros := (c.w+7)/8, 0
	line, ones, rest := faxLine(), 0, d.buf
	for i := range 8*len(c.raw) + 1 {
		end := i == 8*len(c.raw)
		if !end && c.raw[i/8]>>(7-i%8)&1 == 0 {
			zeros++
			line.put(0)
			continue
		}
		if ones > 0 && (end || zeros >= eol) && len(rest) >= row {
			r := ccitt.NewReader(bytes.NewReader(line.bytes), ccitt.MSB, ccitt.Group3, c.w, 1, &ccitt.Options{Invert: true})
			if err := c.read(r, rest[:row]); err != nil {
				return err
			}
			rest = rest[row:]
		}
		if zeros >= eol {
			line, ones = faxLine(), -1 // the 1 of the code does not count as part of the line
		} else {
			line.put(1)
		}
		ones, zeros = ones+1, 0
	}
	if len(rest) > 0 {
		return c.read(bytes.NewReader(nil), rest)
	}
	return nil
}

// bitWriter packs bits into bytes, the first bit into the highest.
type bitWriter struct {
	bytes []byte
	bits  int
}

// faxLine returns a line that begins with an end-of-line code, which the decoder expects there.
func faxLine() bitWriter { return bitWriter{bytes: []byte{0, 0x10}, bits: 12} }

// put appends a bit.
func (w *bitWriter) put(bit byte) {
	if w.bits%8 == 0 {
		w.bytes = append(w.bytes, 0)
	}
	w.bytes[w.bits/8] |= bit << (7 - w.bits%8)
	w.bits++
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
