package imagefile

import (
	"github.com/penstock/penstock/internal/imagefile/jpeg"
	"github.com/penstock/penstock/internal/pixel"
)

// Color says which channels an image is opened with.
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
	MaxPixels int  // larger images are refused from their header; 0 means DefaultMaxPixels
	Orient    bool // turn and mirror as EXIF says, as Pillow's ImageOps.exif_transpose does

	// Zstd fills dst from frames of zstd, which TIFF files may be compressed by. nil: such files are unsupported.
	Zstd func(dst, src []byte) error
}

// A Decoder opens one image after the other. It keeps its memory, which grows to what the largest image needed, so that
// a folder of images does not take and clear new memory for each of them. A Decoder serves one goroutine.
type Decoder struct {
	opt     Options
	bits    []byte // memory of Bits
	raster  raster
	jpeg    jpeg.Source
	pix     []byte // of a decoded image, if it is not the library's
	gray    []byte // the same in one channel
	turned  []byte // of an image that was turned
	palette pixel.Palette
	strips  *jpeg.Source // of JPEG inside of TIFF
}

// channels returns how many channels opened images have.
func (d *Decoder) channels() int {
	if d.opt.Color == Gray {
		return 1
	}
	return 3
}
