package tiff

import (
	"image"
	"image/color"

	"github.com/penstock/penstock/tensor"
)

// Image returns a page whose channels are colors of at most 16 bits, with 8 bits a channel: of more
// bits, the high ones. The orientation is not applied.
func (p *Page) Image(codecs Codecs) (image.Image, error) {
	if p.Model == "channels" || p.DType != tensor.Uint8 && p.DType != tensor.Uint16 {
		return nil, unsupported("preprocess stores such images as arrays, with --sixteen-bit kept and without --keep-encoded",
			"it has %d channels of %v, and pixels are to be 8-bit gray or RGB", p.Channels, p.DType)
	}
	pix, err := p.Samples(codecs)
	if err != nil {
		return nil, err
	}
	if p.DType == tensor.Uint16 {
		pix = p.highBits(pix)
	}
	r := image.Rect(0, 0, p.Width, p.Height)
	switch p.Model {
	case "gray":
		p.spread(pix)
		return &image.Gray{Pix: pix, Stride: p.Width, Rect: r}, nil
	case "palette":
		return &image.Paletted{Pix: pix, Stride: p.Width, Rect: r, Palette: p.palette()}, nil
	case "cmyk":
		p.spread(pix)
		return &image.CMYK{Pix: pix, Stride: 4 * p.Width, Rect: r}, nil
	}
	return p.colors(pix, r), nil
}

// highBits reduces samples of more than 8 bits to their high 8 bits, in place.
func (p *Page) highBits(pix []byte) []byte {
	out := pix[:len(pix)/2]
	for i := range out {
		out[i] = byte((int(pix[2*i]) | int(pix[2*i+1])<<8) >> (p.Bits - 8))
	}
	return out
}

// spread scales samples of fewer than 8 bits to 0 to 255, and inverts samples for which white is 0.
func (p *Page) spread(pix []byte) {
	var table [256]byte
	bits := min(p.Bits, 8)
	most := 1<<bits - 1
	for i := range table {
		table[i] = byte(min(i, most) * 255 / most)
		if p.photometric == whiteIsZero {
			table[i] = ^table[i]
		}
	}
	if bits == 8 && p.photometric != whiteIsZero {
		return
	}
	for i, v := range pix {
		pix[i] = table[v]
	}
}

// colors returns an image with pixels of four bytes.
func (p *Page) colors(pix []byte, r image.Rectangle) image.Image {
	out := make([]byte, 4*p.Width*p.Height)
	n := p.Channels
	p.spreadColors(pix)
	for i := range p.Width * p.Height {
		o, s := out[4*i:4*i+4:4*i+4], pix[i*n:(i+1)*n]
		o[3] = 255
		if n < 3 {
			o[0], o[1], o[2] = s[0], s[0], s[0]
		} else {
			copy(o[:3], s)
		}
		if p.Transparent {
			o[3] = s[n-1]
		}
	}
	if p.Transparent && p.premult {
		return &image.RGBA{Pix: out, Stride: 4 * p.Width, Rect: r}
	}
	return &image.NRGBA{Pix: out, Stride: 4 * p.Width, Rect: r}
}

// spreadColors is spread, but does not invert the alpha of gray with white as 0.
func (p *Page) spreadColors(pix []byte) {
	if p.Model != "graya" || p.photometric != whiteIsZero {
		p.spread(pix)
		return
	}
	for i := 0; i < len(pix); i += 2 {
		pix[i] = ^pix[i]
	}
}

// palette returns the colors of the palette: the high bytes of the 16 bits that each channel has.
// All red values come first, then green, then blue.
func (p *Page) palette() (list color.Palette) {
	e := p.dir[tagColorMap]
	n := e.count / 3
	for i := range min(n, 256) {
		at := func(k int) byte { return byte(p.file.integer(e, k*n+i) >> 8) }
		list = append(list, color.NRGBA{at(0), at(1), at(2), 255})
	}
	return list
}
