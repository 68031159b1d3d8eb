package imagefile

import (
	"encoding/binary"
	"image"
	"slices"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
)

// bmpHeader has the values of a BMP's headers, as Pillow reads these headers: real files deviate
// from Microsoft's description in many ways, and the pixels have to be Pillow's.
type bmpHeader struct {
	w, h    int
	bits    int    // of a pixel
	topDown bool   // the first row in the file is the uppermost
	masks   [4]int // of red, green, blue and alpha in a pixel; 0 if there is none
	palette []byte // entries of 3 or 4 bytes: blue, green, red
	entry   int    // bytes of a palette entry
	pixels  int    // offset of the pixels
}

// bmpHeaderSizes has the lengths of the second header, by which its kind is known: OS/2 1, Windows
// 3, with masks for RGB and RGBA, OS/2 2, Windows 4 and 5.
var bmpHeaderSizes = []int{12, 40, 52, 56, 64, 108, 124}

// Compressions in the second header.
const (
	bmpRaw    = 0
	bitFields = 3
)

// bmpParse reads the headers and finds the palette and the pixels.
func bmpParse(data []byte) (*bmpHeader, error) {
	const first = 14
	size := 0
	if len(data) >= first+4 {
		size = int(binary.LittleEndian.Uint32(data[first:]))
	}
	if len(data) < first+max(size, 4) {
		return nil, format.Corrupt(format.BMP, "truncated at byte %d: the file ends in the header", len(data))
	}
	if !slices.Contains(bmpHeaderSizes, size) {
		return nil, format.Unsupported(format.BMP, "a header of %d bytes is not supported; convert it to PNG", size)
	}
	b := &bmpHeader{entry: 4}
	colors, compression := b.read(data[first : first+size])
	if colors == 0 && b.bits <= 8 {
		colors = 1 << b.bits
	}
	at := first + size
	if err := b.configure(compression); err != nil {
		return nil, err
	}
	if compression == bitFields {
		var err error
		if at, err = b.readMasks(data, first, size); err != nil {
			return nil, err
		}
	}
	b.pixels = int(binary.LittleEndian.Uint32(data[10:]))
	if b.bits > 8 {
		colors = 0
	}
	if colors > 1<<16 {
		return nil, format.Corrupt(format.BMP, "a palette of %d colors", colors)
	}
	end := at + colors*b.entry
	b.palette = data[min(at, len(data)):min(end, len(data))]
	if b.pixels == first+size || b.pixels == 0 {
		b.pixels = end
	}
	return b, nil
}

// read reads size and depth from the second header, and returns the number of colors and the
// compression. A height that is negative as an int32, whose last byte is then 0xFF, means that rows
// are stored from the top.
func (b *bmpHeader) read(h []byte) (colors, compression int) {
	le := binary.LittleEndian
	if len(h) == 12 {
		b.entry = 3
		b.w, b.h, b.bits = int(le.Uint16(h[4:])), int(le.Uint16(h[6:])), int(le.Uint16(h[10:]))
		return 0, bmpRaw
	}
	b.w, b.h, b.bits = int(le.Uint32(h[4:])), int(le.Uint32(h[8:])), int(le.Uint16(h[14:]))
	if h[11] == 0xFF {
		b.topDown, b.h = true, 1<<32-b.h
	}
	return int(le.Uint32(h[32:])), int(le.Uint32(h[16:]))
}

// configure refuses depths and compressions that are not read, and sets the usual masks.
func (b *bmpHeader) configure(compression int) error {
	if !slices.Contains([]int{1, 4, 8, 16, 24, 32}, b.bits) {
		return format.Unsupported(format.BMP, "%d bits a pixel are not supported; convert it to PNG", b.bits)
	}
	if compression != bmpRaw && (compression != bitFields || b.bits < 16) {
		return format.Unsupported(format.BMP, "compression %d of %d bits a pixel is not supported; convert it to PNG",
			compression, b.bits)
	}
	b.masks = [4]int{0xFF0000, 0xFF00, 0xFF, 0}
	if b.bits == 16 {
		b.masks = [4]int{0x7C00, 0x3E0, 0x1F, 0}
	}
	return nil
}

// readMasks reads the masks from the header or, if it is too short for them, from the bytes after
// it. It returns the offset after the masks.
func (b *bmpHeader) readMasks(data []byte, first, size int) (next int, err error) {
	const shortest, alpha = 52, 56 // headers with masks, and with one for alpha
	n, at := 3, first+40
	next = first + size
	if size < shortest {
		next += 12
	}
	if size >= alpha {
		n = 4
	}
	if len(data) < at+4*n {
		return 0, format.Corrupt(format.BMP, "truncated at byte %d: the file ends in the header", len(data))
	}
	var m [4]int
	for i := range n {
		m[i] = int(binary.LittleEndian.Uint32(data[at+4*i:]))
	}
	switch {
	case b.bits == 32 && m == [4]int{}: // no masks at all; Pillow then assumes these
		m = [4]int{0xFF0000, 0xFF00, 0xFF, 0xFF000000}
	case b.bits == 16:
		m[3] = 0
		if m != [4]int{0xF800, 0x7E0, 0x1F, 0} && m != b.masks {
			return 0, format.Unsupported(format.BMP, "masks of %x for 16 bits a pixel are not supported; convert it to PNG",
				m[:3])
		}
	default:
		for i, v := range m {
			if byteOf(v) >= b.bits/8 || v == 0 && i < 3 {
				return 0, format.Unsupported(format.BMP, "masks of %x for %d bits a pixel are not supported; convert it to PNG", m,
					b.bits)
			}
		}
	}
	b.masks = m
	return next, nil
}

// byteOf returns the number of the byte in a pixel that a mask covers, the lowest being 0; -1 for
// no mask, and 4 for a mask that is not exactly one byte.
func byteOf(mask int) int {
	switch mask {
	case 0:
		return -1
	case 0xFF:
		return 0
	case 0xFF00:
		return 1
	case 0xFF0000:
		return 2
	case 0xFF000000:
		return 3
	}
	return 4
}

// config returns the properties of the image.
func (b *bmpHeader) config() format.Config {
	c := format.Config{Width: b.w, Height: b.h, Model: "rgb", Channels: 3, Bits: 8, Transparent: b.masks[3] != 0}
	switch {
	case b.bits <= 8:
		c.Model, c.Channels = "palette", 1
	case c.Transparent:
		c.Model, c.Channels = "rgba", 4
	}
	return c
}

// rowBytes returns the bytes of a row's pixels, and the bytes with padding to a multiple of four.
func (b *bmpHeader) rowBytes() (used, stride int) {
	return (b.w*b.bits + 7) / 8, (b.w*b.bits + 31) / 32 * 4
}

// bmpConfig reads the header.
func bmpConfig(data []byte) (c format.Config, err error) {
	b, err := bmpParse(data)
	if err != nil {
		return c, err
	}
	return b.config(), nil
}

// bmpDecode decodes a BMP. palette is memory for its colors.
func bmpDecode(data []byte, palette *pixel.Palette) (image.Image, error) {
	b, err := bmpParse(data)
	if err != nil {
		return nil, err
	}
	rows := data[min(b.pixels, len(data)):]
	used, stride := b.rowBytes()
	if len(rows) < stride*(b.h-1)+used {
		return nil, format.Corrupt(format.BMP, "truncated at byte %d: the file ends before the image does", len(data))
	}
	b.colors(palette)
	m := image.NewNRGBA(image.Rect(0, 0, b.w, b.h))
	for y := range b.h {
		at := y
		if !b.topDown {
			at = b.h - 1 - y
		}
		b.row(m.Pix[at*m.Stride:][:m.Stride], rows[y*stride:], palette)
	}
	return m, nil
}

// colors fills a table with the palette. In a corrupt file, pixels may have numbers beyond the
// palette: they are black.
func (b *bmpHeader) colors(to *pixel.Palette) {
	to.Black()
	for i := range min(len(b.palette)/b.entry, len(to)) {
		p := b.palette[i*b.entry:]
		to[i] = [4]byte{p[2], p[1], p[0], 255}
	}
}

// row converts a stored row to pixels of four bytes.
func (b *bmpHeader) row(dst, src []byte, palette *pixel.Palette) {
	switch b.bits {
	case 8:
		pixel.FromPalette(dst, src, palette)
	case 16:
		b.row16(dst, src)
	case 24, 32:
		b.rowBytewise(dst, src)
	default: // 1, 4: the first pixel is in the upper bits
		for x := range len(dst) / 4 {
			i := x * b.bits
			v := src[i/8] << (i % 8) >> (8 - b.bits)
			copy(dst[4*x:], palette[v][:])
		}
	}
}

// row16 scales five bits, or six of green, to eight as Pillow does: v*255/31, rounded down.
func (b *bmpHeader) row16(dst, src []byte) {
	green := 31
	if b.masks[1] == 0x7E0 {
		green = 63
	}
	for i := 0; i+4 <= len(dst); i += 4 {
		v := int(binary.LittleEndian.Uint16(src[i/2:]))
		r, g := v>>5/(green+1), v>>5&green
		dst[i], dst[i+1], dst[i+2], dst[i+3] = byte(r&31*255/31), byte(g*255/green), byte(v&31*255/31), 255
	}
}

// rowBytewise converts a row whose channels are whole bytes, in the order of the masks, mostly
// blue, green, red.
func (b *bmpHeader) rowBytewise(dst, src []byte) {
	var at [4]int
	for i, m := range b.masks {
		at[i] = byteOf(m)
	}
	n := b.bits / 8
	for x := range len(dst) / 4 {
		p, s := dst[4*x:][:4], src[n*x:][:n]
		p[0], p[1], p[2], p[3] = s[at[0]], s[at[1]], s[at[2]], 255
		if at[3] >= 0 {
			p[3] = s[at[3]]
		}
	}
}
