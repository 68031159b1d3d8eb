// Package format has what decoders of image files share: names of formats, properties from a
// header, errors, and EXIF.
//
// A decoder first reads the header of a file into a [Config], whose Check bounds the size of the
// image before a byte is allocated for its pixels: files are untrusted, and a header of 30 bytes
// can claim 10^9 pixels. Errors are of type [Error], which says whether the file is corrupt or of a
// variant that is not supported. The package stands below imagefile and its subpackages for single
// formats, which both need it.
package format

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// Format names a file format; "" is an unknown format.
type Format string

// The formats that Open reads.
const (
	JPEG Format = "jpeg"
	PNG  Format = "png"
	GIF  Format = "gif"
	BMP  Format = "bmp"
	TIFF Format = "tiff"
	WebP Format = "webp"
	PNM  Format = "pnm"
)

// DefaultMaxPixels is the number of pixels above which Pillow refuses an image. (Pillow warns from
// half of it on.)
const DefaultMaxPixels = 178956970

// Config has the properties of an image that its header tells.
type Config struct {
	Format        Format
	Width, Height int // pixels as stored, see Opened
	// Model says what the channels are: "gray", "graya", "rgb", "rgba", "palette", "ycbcr", "cmyk",
	// "ycck", or "channels" of unknown meaning.
	Model       string
	Channels    int          // stored samples of a pixel; 1 for a palette
	Bits        int          // of a sample as stored
	Orientation int          // EXIF, 1 to 8; 1 if the file has none
	Transparent bool         // the file declares transparency, in any way that its format has
	DType       tensor.DType // of a sample, Uint8 for up to 8 bits
}

// Opened returns the size of the image after it was opened with this Options.Orient.
func (c Config) Opened(orient bool) (w, h int) {
	if c.Turned(orient) && c.Orientation >= 5 {
		return c.Height, c.Width
	}
	return c.Width, c.Height
}

// Turned reports whether opening applies the orientation: if Options.Orient asks for it, and always
// for TIFF, as in Pillow.
func (c Config) Turned(orient bool) bool {
	return c.Orientation > 1 && (orient || c.Format == TIFF)
}

// Check returns an ErrTooLarge if the image has more than maxPixels pixels; 0 means
// DefaultMaxPixels. The division cannot overflow, as a product could.
func (c Config) Check(maxPixels int) error {
	if maxPixels == 0 {
		maxPixels = DefaultMaxPixels
	}
	if c.Height <= maxPixels/c.Width {
		return nil
	}
	return &Error{c.Format, ErrTooLarge, fmt.Sprintf(
		"image size %dx%d (%d pixels) exceeds limit of %d pixels, could be decompression bomb DOS attack; if it is meant "+
			"to be that large, raise the limit (--max-pixels, Images.MaxPixels)",
		c.Width, c.Height, uint64(c.Width)*uint64(c.Height), maxPixels)}
}

// Deep reports whether 8-bit gray or RGB cannot hold the image: its samples have more bits, are
// floats or signed, or the file does not say what its channels are. Samples returns such an image
// as it is; Open reduces 16 bits to 8.
func (c Config) Deep() bool { return c.DType != tensor.Uint8 || c.Model == "channels" }
