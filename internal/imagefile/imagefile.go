// Package imagefile turns image files into pixels: the ones that Pillow's
// Image.open(f).convert("RGB") gives, or convert("L").
//
// That means: the format is sniffed from the content. Alpha is dropped, neither blended nor premultiplied, unless
// Options.Alpha has it blended; palettes are expanded; CMYK becomes RGB by Pillow's formula, Adobe's inversion undone.
// Color profiles are ignored, and so is EXIF orientation unless asked for; the orientation of a TIFF always counts. Of
// an animation the first frame is taken. Gray is (19595 R + 38470 G + 7471 B + 32768) >> 16. A JPEG goes through
// libjpeg's accurate integer transform, its triangle filter for chroma ("fancy upsampling") and its conversion to RGB,
// a WebP through libwebp's filter and conversion, bit for bit. A progressive JPEG whose scans are not all there is
// completed by guesses, as libjpeg-turbo 3 does.
//
// It differs from Pillow on purpose in two things: samples of 16 bits are reduced to their
// high byte also in gray images, where Pillow clips them at 255, and a file that is cut
// short or corrupt is an error, where other decoders return gray or green.
//
// JPEG, BMP and TIFF are decoded here, other formats by Go libraries, whole.
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

// DefaultMaxPixels is Pillow's limit for a single image (a third of it only warns there).
const DefaultMaxPixels = format.DefaultMaxPixels

// Kinds of errors; each error of this package is one of these to errors.Is.
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

// Open returns the image that the file's bytes hold. The Source is valid until the next
// Open, and data must not change meanwhile. Size, format and limits are checked before
// anything is decoded.
//
// Pixels may be decoded by Open or by Scan, so either may find the file corrupt; Open finds
// one that ends too early. Corruption below the last row that is scanned may
// go unnoticed, and so may corruption after the first frame. The built-in decoder detects more corrupt codes
// than libjpeg-turbo, which takes a run that leads out of a block for its end. All errors of a file are an
// *Error, at some depth.
func (d *Decoder) Open(data []byte) (pixel.Source, error) {
	f, err := Parse(data)
	if err != nil {
		return nil, err
	}
	return d.OpenFile(f)
}

// OpenFile is Open for a file whose header was parsed.
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
