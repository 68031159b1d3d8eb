package imagefile

import (
	"github.com/penstock/penstock/internal/imagefile/jpeg"
	"github.com/penstock/penstock/internal/pixel"
)

// Color says with which channels an image is opened.
type Color uint8

// The values of Color.
const (
	RGB  Color = iota // three channels; gray is repeated
	Gray              // one channel
)

// Options configures a Decoder. The zero value is usable.
type Options struct {
	Color     Color
	Alpha     Alpha
	MaxPixels int  // larger images are refused by their header; 0 means DefaultMaxPixels
	Orient    bool // turn and mirror by the EXIF orientation, as Pillow's ImageOps.exif_transpose does

	// Zstd fills dst from zstd frames, a compression of some TIFF files. Without it, such files are
	// unsupported.
	Zstd func(dst, src []byte) error
}

// A Decoder opens one image after the other. It keeps its memory, which grows to the need of the
// largest image, so that a folder of images does not allocate and clear memory for each of them. A
// Decoder serves one goroutine, and an opened image is valid until the next image is opened.
type Decoder struct {
	opt     Options
	bits    []byte // memory of Bits
	raster  raster
	jpeg    jpeg.Source
	pix     []byte // pixels of a decoded image, unless they are the library's
	gray    []byte // pixels with one channel
	turned  []byte // pixels of an image that was turned
	palette pixel.Palette
	strips  *jpeg.Source // for JPEG inside of TIFF
}

// channels returns the number of channels of opened images.
func (d *Decoder) channels() int {
	if d.opt.Color == Gray {
		return 1
	}
	return 3
}
