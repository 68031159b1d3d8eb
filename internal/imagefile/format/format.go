// Package format has what decoders of image files share: the names of formats, what a header says, errors, and EXIF.
//
// A decoder first reads the header of a file into a [Config], whose Check bounds the size of the image before a byte is
// allocated for its pixels: files are untrusted, and a header of 30 bytes can claim 10^9 pixels. Its errors are of type
// [Error], which says whether the file is corrupt or of a kind that is not supported.
package format

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// Format names a file format; "" is none that is known.
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

// DefaultMaxPixels is Pillow's limit for a single image (a third of it only warns there).
const DefaultMaxPixels = 178956970

// Config has the properties of an image from its header.
type Config struct {
	Format        Format
	Width, Height int // pixels as stored, see Opened
	// "gray", "graya", "rgb", "rgba", "palette", "ycbcr", "cmyk", "ycck", or "channels" of unknown meaning
	Model       string
	Channels    int          // stored samples of a pixel; 1 for a palette
	Bits        int          // of a sample as stored
	Orientation int          // EXIF, 1 to 8; 1 if the file has none
	Transparent bool         // the file declares transparency, in whatever way its format has
	DType       tensor.DType // of a sample, Uint8 for up to 8 bits
}

// Opened returns the size that the image has once it is opened with Options.Orient as given.
func (c Config) Opened(orient bool) (w, h int) {
	if c.Turned(orient) && c.Orientation >= 5 {
		return c.Height, c.Width
	}
	return c.Width, c.Height
}

// Turned reports whether Open applies the orientation: if it is asked to, and to TIFF,
// as Pillow does.
func (c Config) Turned(orient bool) bool {
	return c.Orientation > 1 && (orient || c.Format == TIFF)
}

// Check returns an ErrTooLarge if the image has more than maxPixels pixels; 0 stands for
// DefaultMaxPixels.
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

// Deep reports whether 8-bit gray or RGB cannot hold the image: its samples have more bits, or are floats or signed, or
// the file does not say which colors its channels are. Samples returns such an image as it is; Open makes 8 bits of 16.
func (c Config) Deep() bool { return c.DType != tensor.Uint8 || c.Model == "channels" }
