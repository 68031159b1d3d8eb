package imagefile

import (
	"image"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/imagefile/jpeg"
	"github.com/penstock/penstock/internal/imagefile/tiff"
	"github.com/penstock/penstock/internal/pixel"
)

// tiffConfig reads the directory of the first page.
func tiffConfig(data []byte) (c format.Config, err error) {
	err = format.Guard(format.TIFF, func() error {
		p, err := tiff.Read(data)
		if err != nil {
			return err
		}
		c = format.Config{
			Width: p.Width, Height: p.Height, Model: p.Model, Channels: p.Channels, Bits: p.Bits, DType: p.DType,
			Orientation: p.Orientation, Transparent: p.Transparent,
		}
		return nil
	})
	return c, err
}

// decodeTIFF decodes the first page of a TIFF.
func (d *Decoder) decodeTIFF(data []byte) (image.Image, error) {
	p, err := tiff.Read(data)
	if err != nil {
		return nil, err
	}
	return p.Image(d.codecs())
}

// codecs returns the decoders that package tiff does not have.
func (d *Decoder) codecs() tiff.Codecs { return tiff.Codecs{JPEG: d.strip, Zstd: d.opt.Zstd} }

// strip decodes a JPEG inside of a TIFF, by a jpeg.Source of its own. pix is valid until the next
// strip.
func (d *Decoder) strip(data []byte, w, h, channels int) (pix []byte, gotW, gotH int, err error) {
	c, err := ReadConfig(data)
	switch {
	case err != nil:
		return nil, 0, 0, err
	case c.Format != format.JPEG || c.Width > w || c.Height > h || c.Channels != channels:
		return nil, 0, 0, format.Corrupt(format.TIFF,
			"a strip or tile of %dx%d pixels with %d channels is a %s of %dx%d with %d", w, h, channels, c.Format, c.Width,
			c.Height, c.Channels)
	}
	if d.strips == nil {
		d.strips = new(jpeg.Source)
	}
	if err := d.strips.Open(data, channels); err != nil {
		return nil, 0, 0, err
	}
	d.pix = pixel.Grow(d.pix, c.Width*c.Height*channels)
	out := d.pix[:0]
	err = d.strips.Scan(image.Rect(0, 0, c.Width, c.Height), func(_ int, strip pixel.Image) error {
		for y := range strip.H {
			for x := range strip.W {
				out = append(out, strip.Pix[y*strip.Stride+x*strip.Step:][:channels]...)
			}
		}
		return nil
	})
	return out, c.Width, c.Height, err
}
