// Package imagefile turns image files into pixels: the same pixels as Pillow's
// Image.open(f).convert("RGB") or convert("L").
//
//	Sniff, ReadConfig  the format, and the properties in the header
//	Decoder.Open       8-bit RGB or gray, as a pixel.Source
//	Decoder.Samples    16-bit, float and multi-channel images with their own type
//	Decoder.Numbers    masks: numbers of classes, exactly as stored
//	Bitmap             masks with one bit a pixel
//
// Equal to Pillow means: the format is sniffed from the content. Alpha is dropped, neither blended
// nor premultiplied, unless Options.Alpha asks for blending; palettes are expanded; CMYK becomes
// RGB by Pillow's formula, with Adobe's inversion undone. Color profiles are ignored, and so is the
// EXIF orientation unless it is asked for; the orientation of a TIFF always counts. Of an animation
// the first frame is taken. Gray is (19595 R + 38470 G + 7471 B + 32768) >> 16. A JPEG goes through
// libjpeg's accurate integer transform, its triangle filter for chroma ("fancy upsampling") and its
// conversion to RGB, and a WebP through libwebp's filter and conversion, bit for bit. A progressive
// JPEG with missing scans is completed by estimates, as in libjpeg-turbo 3.
//
// Two differences from Pillow are on purpose: samples of 16 bits are reduced to their high byte
// also in gray images, which Pillow clips at 255; and a file that is cut short or corrupt is an
// error, where other decoders return gray or green pixels.
//
// JPEG, BMP and TIFF are decoded by this project, other formats by Go libraries, as a whole. Files
// are untrusted: sizes are checked before memory is allocated, and every decoder of a library runs
// under format.Guard.
package imagefile

import (
	"errors"
	"image"

	"github.com/penstock/penstock/internal/imagefile/format"

	"github.com/penstock/penstock/internal/pixel"
)

// The results of Open and ReadConfig, under the names that callers use.
type (
	// Config has the properties of an image from its header.
	Config = format.Config

	// An Error is the error of a file. Its text names the format and no path.
	Error = format.Error
)

// The formats that callers name.
const (
	JPEG = format.JPEG
	PNG  = format.PNG
	TIFF = format.TIFF
	PNM  = format.PNM
)

// DefaultMaxPixels is the number of pixels above which Pillow refuses an image.
const DefaultMaxPixels = format.DefaultMaxPixels

// Kinds of errors, for errors.Is.
var (
	ErrNotImage    = format.ErrNotImage
	ErrCorrupt     = format.ErrCorrupt
	ErrUnsupported = format.ErrUnsupported
	ErrTooLarge    = format.ErrTooLarge
)

// Backend names the JPEG decoder, with its version.
func Backend() string { return "built-in 1 (pure Go)" }

// New returns a Decoder.
func New(opt Options) *Decoder { return &Decoder{opt: opt} }

// Open returns the image in a file's bytes. The Source is valid until the next Open, and data must
// not change meanwhile. Size, format and limits are checked before anything is decoded.
//
// Pixels may be decoded by Open or by Scan, so either may find the file corrupt; a file that ends
// too early is found by Open. Corruption below the last scanned row may go unnoticed, and so may
// corruption after the first frame. The built-in JPEG decoder finds more corrupt codes than
// libjpeg-turbo, which takes a run that leads out of a block for the block's end. Every error of a
// file wraps an *Error.
func (d *Decoder) Open(data []byte) (pixel.Source, error) {
	f, err := Parse(data)
	if err != nil {
		return nil, err
	}
	return d.OpenFile(f)
}

// OpenFile is Open for a file whose header was already parsed.
func (d *Decoder) OpenFile(f File) (pixel.Source, error) {
	c, data := f.Config, f.data
	if err := c.Check(d.opt.MaxPixels); err != nil {
		return nil, err
	}
	src, err := d.open(c, data)
	if err != nil {
		return nil, err
	}
	if c.Turned(d.opt.Orient) {
		return d.turn(src, c.Orientation)
	}
	return src, nil
}

// open opens an image without its orientation. JPEG is decoded strip by strip in Scan; all other
// formats are decoded here.
func (d *Decoder) open(c format.Config, data []byte) (pixel.Source, error) {
	if c.Format == format.JPEG {
		return &d.jpeg, d.jpeg.Open(data, d.channels())
	}
	var m image.Image
	err := format.Guard(c.Format, func() (err error) {
		m, err = d.decodeWhole(c, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.fromImage(c, m)
}

// decodeWhole decodes an image of any format but JPEG.
func (d *Decoder) decodeWhole(c format.Config, data []byte) (image.Image, error) {
	switch c.Format {
	case format.PNG:
		return pngDecode(c, data)
	case format.GIF:
		return gifDecode(data, &d.palette)
	case format.BMP:
		return bmpDecode(data, &d.palette)
	case format.TIFF:
		return d.decodeTIFF(data)
	case format.WebP:
		return webpDecode(data)
	case format.PNM:
		return pnmDecode(data)
	}
	return nil, errors.New("no decoder for this format")
}
