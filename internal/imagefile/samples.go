package imagefile

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/imagefile/format"

	"github.com/penstock/penstock/internal/imagefile/tiff"
	"github.com/penstock/penstock/internal/pixel"
)

// Samples returns a Deep image of a PNG, TIFF or Netpbm file with its own type and channels. Alpha
// is left out, as by Open. Gray pages of a TIFF with one size and type become the channels of one
// image, as microscopes write them. Blending and conversions of color are errors.
func (d *Decoder) Samples(data []byte) (m pixel.Raster, err error) {
	f, err := Parse(data)
	if err != nil {
		return m, err
	}
	return d.SamplesOf(f)
}

// SamplesOf is Samples for a file whose header was already parsed.
func (d *Decoder) SamplesOf(f File) (m pixel.Raster, err error) {
	c, data := f.Config, f.data
	if err := c.Check(d.opt.MaxPixels); err != nil {
		return m, err
	}
	if c.Transparent && d.opt.Alpha != DropAlpha {
		return m, format.Unsupported(c.Format,
			"its alpha cannot be blended, as it has %v samples; --alpha dropped leaves it out", c.DType)
	}
	err = format.Guard(c.Format, func() (err error) {
		switch c.Format {
		case format.PNG:
			m, err = pngSamples(c, data)
		case format.TIFF:
			m, err = d.tiffSamples(c, data)
		case format.PNM:
			m, err = pnmSamples(data)
		default:
			err = errors.New("no reader of samples for this format")
		}
		return err
	})
	if err == nil && c.Turned(d.opt.Orient) {
		m = turnSamples(m, c.Orientation)
	}
	return m, err
}

// tiffSamples returns the pages of a TIFF as one image, with a channel for each page.
func (d *Decoder) tiffSamples(c format.Config, data []byte) (m pixel.Raster, err error) {
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
			return m, fmt.Errorf(
				"it has %d pages; page %d is %dx%d with %d channels of %v, and the first %dx%d with %d of %v: %w",
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

// errPages is the error of pages that do not belong together. It says how to take out one page.
var errPages = tiff.UnsupportedError(
	"write the one that is meant to a file of its own: python -c \"import tifffile as t; t.imwrite('new.tif', " +
		"t.imread('old.tif', key=0))\"")

// checkSamples refuses an image that needs more memory than the largest image of 16-bit RGBA, 8
// bytes a pixel: 64-bit samples and many pages can need many times the bytes of the pixels that
// Config.Check limits.
func (d *Decoder) checkSamples(bytes float64) error {
	limit := d.opt.MaxPixels
	if limit == 0 {
		limit = format.DefaultMaxPixels
	}
	if bytes <= 8*float64(limit) {
		return nil
	}
	return &format.Error{Format: format.TIFF, Kind: format.ErrTooLarge,
		Msg: fmt.Sprintf("image of %.0f bytes exceeds 8 for each of %d pixels; if it is meant to be that large, raise the "+
			"limit (--max-pixels, Images.MaxPixels)", bytes, limit)}
}

// dropAlpha removes the last channel of an image that declares it to be alpha, in place.
func dropAlpha(m pixel.Raster, c format.Config) pixel.Raster {
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
