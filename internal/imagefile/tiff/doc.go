// Package tiff reads TIFF 6.0 and BigTIFF files as they are written by cameras, microscopes and satellites: samples of
// 1 to 64 bits, integers and floats, in any number of channels, in strips or tiles, interleaved or in planes. Values
// are the same as in tifffile and Pillow.
//
// Compressions are none, PackBits, LZW, deflate, CCITT groups 3 and 4, and, where [Codecs] has a decoder, JPEG and
// zstd. Predictors are 2, horizontal, and 3, for floats. Other files are an [UnsupportedError] that names the remedy.
//
// Files are untrusted: memory and work are bounded by what the header says of the image, which callers limit
// before they decode, and nothing is allocated for a directory beyond its bytes in the file.
package tiff

import "fmt"

// A FormatError is the fault of a file.
type FormatError string

func (e FormatError) Error() string { return string(e) }

// An UnsupportedError is something that a file may have and that is not read. It says what to do.
type UnsupportedError string

func (e UnsupportedError) Error() string { return string(e) }

func malformed(format string, args ...any) error { return FormatError(fmt.Sprintf(format, args...)) }

// unsupported says what is not read, and how to make a file that is.
func unsupported(remedy, format string, args ...any) error {
	return UnsupportedError(fmt.Sprintf(format, args...) + "; " + remedy)
}

// Commands that make a file that is read.
const (
	rewrite = "rewrite it: python -c \"import tifffile as t; t.imwrite('new.tif', t.imread('old.tif'), " +
		"compression='deflate')\""
	toRGB = "convert it to RGB: magick old.tif -colorspace sRGB new.png"
)
