package imagefile

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/gif"
	"io"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
)

// gifHeader has the values of a GIF's blocks up to its first frame (GIF89a specification).
type gifHeader struct {
	w, h    int    // logical screen
	palette []byte // RGB triples: the first frame's own, otherwise the global palette
	fill    byte   // color number where the first frame has no pixels: the transparent color, otherwise 0
	clear   bool   // fill is transparent
}

// gifParse reads the blocks of a GIF up to its first frame. The palette is read here, too, because
// image/gif makes the transparent color black, where Pillow keeps the color.
func gifParse(data []byte) (gifHeader, error) {
	var g gifHeader
	short := format.Corrupt(format.GIF, "truncated at byte %d: the file ends before the first frame", len(data))
	if len(data) < 13 {
		return g, short
	}
	g.w, g.h = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
	rest, ok := g.colors(data[10], data[13:])
	for ok && len(rest) > 0 {
		switch rest[0] {
		case ',':
			if len(rest) < 10 {
				return g, short
			}
			g.grow(rest[1:9])
			if _, ok = g.colors(rest[9], rest[10:]); !ok {
				return g, short
			}
			return g, nil
		case '!':
			rest, ok = g.extension(rest[1:])
		case ';':
			return g, format.Corrupt(format.GIF, "holds no frame")
		default:
			return g, format.Corrupt(format.GIF, "unknown block type %#x at byte %d", rest[0], len(data)-len(rest))
		}
	}
	return g, short
}

// grow enlarges the screen to hold the first frame, as Pillow does. at has the frame's position and
// size.
func (g *gifHeader) grow(at []byte) {
	le := binary.LittleEndian
	g.w = max(g.w, int(le.Uint16(at))+int(le.Uint16(at[4:])))
	g.h = max(g.h, int(le.Uint16(at[2:]))+int(le.Uint16(at[6:])))
}

// screen returns the first 10 bytes of the file with the enlarged size of the screen: image/gif
// refuses a frame that is larger than the screen.
func (g *gifHeader) screen(header []byte) []byte {
	header = bytes.Clone(header[:10])
	binary.LittleEndian.PutUint16(header[6:], uint16(min(g.w, 1<<16-1)))
	binary.LittleEndian.PutUint16(header[8:], uint16(min(g.h, 1<<16-1)))
	return header
}

// colors reads the color table at the start of b, if the flags say that the file has a color table.
func (g *gifHeader) colors(flags byte, b []byte) (rest []byte, ok bool) {
	if flags&0x80 == 0 {
		return b, true
	}
	n := 3 << (flags&7 + 1)
	if len(b) < n {
		return nil, false
	}
	g.palette = b[:n]
	return b[n:], true
}

// extension skips an extension: a label and blocks with their lengths, up to an empty one. From a
// graphic control extension it takes the transparent color.
func (g *gifHeader) extension(b []byte) (rest []byte, ok bool) {
	const graphicControl = 0xF9
	if len(b) >= 6 && b[0] == graphicControl && b[1] == 4 && b[2]&1 != 0 {
		g.fill, g.clear = b[5], true
	}
	for b = b[min(1, len(b)):]; len(b) > 0; {
		n := int(b[0])
		if n == 0 {
			return b[1:], true
		}
		if n >= len(b) {
			break
		}
		b = b[1+n:]
	}
	return nil, false
}

// table fills a table with the colors. Numbers without a color are black.
func (g *gifHeader) table(to *pixel.Palette) {
	to.Black()
	for i := range len(g.palette) / 3 {
		copy(to[i][:3], g.palette[3*i:])
	}
	if g.clear {
		to[g.fill][3] = 0
	}
}

// gifConfig reads the header up to the first frame, which may enlarge the screen.
func gifConfig(data []byte) (format.Config, error) {
	g, err := gifParse(data)
	return format.Config{Width: g.w, Height: g.h, Model: "palette", Channels: 1, Bits: 8, Transparent: g.clear}, err
}

// gifDecode decodes the first frame onto the logical screen, as Pillow does. The colors are written
// to palette; the returned image has no Palette.
func gifDecode(data []byte, palette *pixel.Palette) (image.Image, error) {
	g, err := gifParse(data)
	if err != nil {
		return nil, err
	}
	m, err := gif.Decode(io.MultiReader(bytes.NewReader(g.screen(data)), bytes.NewReader(data[10:])))
	if err != nil {
		return nil, err
	}
	frame, ok := m.(*image.Paletted)
	if !ok {
		return nil, format.Unsupported(format.GIF, "the first frame is a %T", m)
	}
	g.table(palette)
	frame.Palette = nil
	screen := image.Rect(0, 0, g.w, g.h)
	if frame.Rect == screen {
		return frame, nil
	}
	full := image.NewPaletted(screen, nil)
	for i := range full.Pix {
		full.Pix[i] = g.fill
	}
	r := frame.Rect.Intersect(screen)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		copy(full.Pix[full.PixOffset(r.Min.X, y):][:r.Dx()], frame.Pix[frame.PixOffset(r.Min.X, y):])
	}
	return full, nil
}
