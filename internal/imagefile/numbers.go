package imagefile

import (
	"image"

	"github.com/penstock/penstock/internal/imagefile/format"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// Numbers returns the numbers of a mask: the indexes into a palette, or the samples of a gray
// image. Samples are not scaled: samples of 2 bits are 0 to 3. The numbers are uint8, or uint16 if
// the file has 16 bits. Files with colors, and files of lossy formats, are errors.
func (d *Decoder) Numbers(data []byte) (m pixel.Raster, err error) {
	f, err := Parse(data)
	if err != nil {
		return m, err
	}
	c := f.Config
	if err := c.Check(d.opt.MaxPixels); err != nil {
		return m, err
	}
	if c.Format != format.PNG && c.Deep() {
		if m, err = d.SamplesOf(f); err == nil && (m.C != 1 || m.DType.IsFloat()) {
			err = notNumbers(c)
		}
		return m, err
	}
	m = pixel.Raster{W: c.Width, H: c.Height, C: 1, DType: tensor.Uint8}
	if b, ok := d.Bits(data); ok {
		m.Pix = make([]byte, m.W*m.H)
		b.Bytes(m.Pix, 0, m.H)
		return m, nil
	}
	err = format.Guard(c.Format, func() (err error) {
		var img image.Image
		switch {
		case c.Format == format.PNG && (c.Model == "gray" || c.Model == "palette"):
			img, err = pngDecode(c, data)
		case c.Format == format.PNM && c.Channels == 1:
			m, err = pnmSamples(data)
			return err
		case c.Format == format.GIF, c.Format == format.BMP, c.Format == format.TIFF:
			img, err = d.decodeWhole(c, data)
		default:
			return notNumbers(c)
		}
		if err == nil {
			err = numbersOf(&m, c, img)
		}
		return err
	})
	if err == nil && c.Turned(d.opt.Orient) {
		m = turnSamples(m, c.Orientation)
	}
	return m, err
}

// NewBitmap returns a Bitmap of zeros, in the given memory if that is large enough.
func NewBitmap(memory []byte, w, h int) Bitmap { return newBitmap(memory, w, h) }

// maxBits limits the pixels of a Bitmap, which needs only one byte for eight pixels.
const maxBits = 1 << 30

// Bits is Numbers for a PNG with one bit a pixel. It needs less memory and time, as the pixels stay
// packed. It returns false for all other files, and for corrupt ones, for which Numbers returns the
// error. The Bitmap is valid until the next call.
func (d *Decoder) Bits(data []byte) (Bitmap, bool) {
	f, err := Parse(data)
	if err != nil || f.Config.Format != format.PNG || f.Config.Turned(d.opt.Orient) {
		return Bitmap{}, false
	}
	most := d.opt.MaxPixels
	if most == 0 {
		most = maxBits
	}
	if f.Config.Check(most) != nil {
		return Bitmap{}, false
	}
	m, ok := pngBits(f.Config, data, d.bits)
	if ok {
		d.bits = m.Rows
	}
	return m, ok
}

// notNumbers refuses masks whose pixels are not classes. JPEG and lossy WebP change values at
// edges, where a class would silently become another class.
func notNumbers(c format.Config) error {
	if c.Format == format.JPEG || c.Format == format.WebP {
		return format.Unsupported(c.Format,
			"a mask must be of a format that keeps its numbers: PNG, TIFF, Netpbm, BMP or GIF")
	}
	return format.Unsupported(c.Format,
		"has colors (%s), and a mask has one number a pixel: make it gray, or of a palette", c.Model)
}

// numbersOf copies the numbers of an image to m.
func numbersOf(m *pixel.Raster, c format.Config, img image.Image) error {
	m.Pix = make([]byte, 0, m.W*m.H)
	switch img := img.(type) {
	case *image.Paletted:
		m.Pix = packed(m.Pix, img.Pix, img.Stride, m.W, m.H)
	case *image.Gray:
		m.Pix = packed(m.Pix, img.Pix, img.Stride, m.W, m.H)
		if bits := c.Bits; c.Format == format.PNG && bits < 8 { // image/png has scaled them to 0 to 255
			for i := range m.Pix {
				m.Pix[i] >>= 8 - bits
			}
		}
	case *image.Gray16:
		m.DType = tensor.Uint16
		for y := range m.H {
			row := img.Pix[y*img.Stride:][:2*m.W]
			for ; len(row) > 0; row = row[2:] {
				m.Pix = append(m.Pix, row[1], row[0])
			}
		}
	default:
		return notNumbers(c)
	}
	return nil
}

// packed appends w by h bytes of an image whose rows are stride bytes apart.
func packed(to, pix []byte, stride, w, h int) []byte {
	for y := range h {
		to = append(to, pix[y*stride:][:w]...)
	}
	return to
}
