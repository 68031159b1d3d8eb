package imagefile

import (
	"errors"
	"fmt"
	"image"

	"github.com/penstock/penstock/internal/imagefile/tiff"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// Deep reports whether 8-bit gray or RGB cannot hold the image: its samples have more bits, or are floats or signed, or
// the file does not say which colors its channels are. Samples returns such an image as it is; Open makes 8 bits of 16.
func (c Config) Deep() bool { return c.DType != tensor.Uint8 || c.Model == "channels" }

// Samples returns a Deep image of a PNG, TIFF or Netpbm file with the type and channels that it has. Alpha is left out, as
// by Open. Pages of a TIFF that are gray, of one size and type are channels of one image. Blending and conversions of
// color are errors.
func (d *Decoder) Samples(data []byte) (m pixel.Raster, err error) {
	c, err := ReadConfig(data)
	if err != nil {
		return m, err
	}
	if err := c.Check(d.opt.MaxPixels); err != nil {
		return m, err
	}
	if c.Transparent && d.opt.Alpha != DropAlpha {
		return m, unsupported(c.Format, "its alpha cannot be blended, as it has %v samples; --alpha dropped leaves it out", c.DType)
	}
	err = guard(c.Format, func() (err error) {
		switch c.Format {
		case PNG:
			m, err = pngSamples(c, data)
		case TIFF:
			m, err = d.tiffSamples(c, data)
		case PNM:
			m, err = pnmSamples(data)
		default:
			err = errors.New("no reader of samples for this format")
		}
		return err
	})
	if err == nil && c.turned(d.opt.Orient) {
		m = turnSamples(m, c.Orientation)
	}
	return m, err
}

// tiffSamples returns the image that all pages are.
func (d *Decoder) tiffSamples(c Config, data []byte) (m pixel.Raster, err error) {
	pages, err := tiff.Pages(data)
	if err != nil {
		return m, err
	}
	m = pixel.Raster{W: c.Width, H: c.Height, C: c.Channels, DType: c.DType}
	if len(pages) == 1 {
		if err := d.checkSamples(pages[0].Bytes()); err != nil {
			return m, err
		}
		m.Pix, err = pages[0].Samples(d.codecs())
		return dropAlpha(m, c), err
	}
	for i, p := range pages {
		if p.Channels != 1 || p.Width != m.W || p.Height != m.H || p.DType != m.DType {
			return m, fmt.Errorf("it has %d pages; page %d is %dx%d with %d channels of %v, and the first %dx%d with %d of %v: %w",
				len(pages), i, p.Width, p.Height, p.Channels, p.DType, m.W, m.H, m.C, m.DType, errPages)
		}
	}
	m.C = len(pages)
	if err := d.checkSamples(pages[0].Bytes() * float64(m.C)); err != nil {
		return m, err
	}
	size := m.DType.Size()
	m.Pix = make([]byte, m.W*m.H*m.C*size)
	for i, p := range pages {
		plane, err := p.Samples(d.codecs())
		if err != nil {
			return m, err
		}
		for k := range m.W * m.H {
			copy(m.Pix[(k*m.C+i)*size:][:size], plane[k*size:])
		}
	}
	return m, nil
}

// errPages says what to do with pages that do not belong together.
var errPages = tiff.UnsupportedError("write the one that is meant to a file of its own: python -c \"import tifffile as t; t.imwrite('new.tif', t.imread('old.tif', key=0))\"")

// checkSamples refuses what takes more memory than the largest image of 16-bit RGBA.
func (d *Decoder) checkSamples(bytes float64) error {
	limit := d.opt.MaxPixels
	if limit == 0 {
		limit = DefaultMaxPixels
	}
	if bytes <= 8*float64(limit) {
		return nil
	}
	return &Error{TIFF, ErrTooLarge, fmt.Sprintf("image of %.0f bytes exceeds 8 for each of %d pixels; if it is meant to be that large, raise the limit (--max-pixels, Images.MaxPixels)", bytes, limit)}
}

// dropAlpha leaves out the last channel of an image that declares it to be alpha.
func dropAlpha(m pixel.Raster, c Config) pixel.Raster {
	if !c.Transparent || c.Model != "graya" && c.Model != "rgba" || len(m.Pix) == 0 {
		return m
	}
	from := m.C * m.DType.Size()
	m.C--
	to := m.C * m.DType.Size()
	for i := range m.W * m.H {
		copy(m.Pix[i*to:][:to], m.Pix[i*from:])
	}
	m.Pix = m.Pix[:m.W*m.H*to]
	return m
}

// pngSamples returns an image of 16 bits.
func pngSamples(c Config, data []byte) (m pixel.Raster, err error) {
	img, err := decodePNG(c, data)
	if err != nil {
		return m, err
	}
	m = pixel.Raster{W: c.Width, H: c.Height, C: 3, DType: tensor.Uint16}
	if c.Model == "gray" || c.Model == "graya" {
		m.C = 1
	}
	var pix []byte
	step := 8
	switch img := img.(type) {
	case *image.Gray16:
		pix, step = img.Pix, 2
	case *image.RGBA64:
		pix = img.Pix
	case *image.NRGBA64:
		pix = img.Pix
	default:
		return m, fmt.Errorf("pixels of type %T", img)
	}
	m.Pix = make([]byte, 0, m.W*m.H*m.C*2)
	for ; len(pix) > 0; pix = pix[step:] {
		for k := range m.C {
			m.Pix = append(m.Pix, pix[2*k+1], pix[2*k])
		}
	}
	return m, nil
}

// turnSamples does what EXIF orientation o asks for.
func turnSamples(m pixel.Raster, o int) pixel.Raster {
	size := m.C * m.DType.Size()
	out, at := m, orientation(o, m.W, m.H, size)
	if o >= 5 {
		out.W, out.H = m.H, m.W
	}
	out.Pix = make([]byte, len(m.Pix))
	for y := range m.H {
		start, next := at(y)
		for x := range m.W {
			copy(out.Pix[start+x*next:][:size], m.Pix[(y*m.W+x)*size:])
		}
	}
	return out
}
