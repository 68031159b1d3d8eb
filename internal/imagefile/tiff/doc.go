// Package tiff reads TIFF 6.0 and BigTIFF files as cameras, microscopes and satellites write them:
// samples of 1 to 64 bits, integers and floats, in any number of channels, in strips or tiles,
// interleaved or in planes. Values are the same as in tifffile and Pillow. golang.org/x/image/tiff
// reads neither floats nor BigTIFF.
//
// Read and Pages read the directories: a Page has everything that the file says of an image.
// Page.Samples then decodes strips and tiles into one array with the file's own type, and
// Page.Image reduces colors to 8 bits.
//
// Strips are uncompressed, or compressed by PackBits, LZW, deflate, CCITT groups 3 and 4, and, if
// [Codecs] has a decoder, JPEG and zstd. Predictors are 2, horizontal, and 3, for floats. Other
// files are an [UnsupportedError], which names a remedy.
//
// Files are untrusted: memory and work are bounded by the size of the image in the directory, which
// callers limit before they decode, and nothing is allocated for a directory beyond its bytes in
// the file.
package tiff

import "fmt"

// A FormatError says that a file is malformed.
type FormatError string

func (e FormatError) Error() string { return string(e) }

// An UnsupportedError names a feature of TIFF that is not read, and what to do about the file.
type UnsupportedError string

func (e UnsupportedError) Error() string { return string(e) }

// malformed returns a FormatError.
func malformed(format string, args ...any) error { return FormatError(fmt.Sprintf(format, args...)) }

// unsupported returns an UnsupportedError that ends with the remedy.
func unsupported(remedy, format string, args ...any) error {
	return UnsupportedError(fmt.Sprintf(format, args...) + "; " + remedy)
}

// Remedies: commands that make a file which can be read.
const (
	rewrite = "rewrite it: python -c \"import tifffile as t; t.imwrite('new.tif', t.imread('old.tif'), " +
		"compression='deflate')\""
	toRGB = "convert it to RGB: magick old.tif -colorspace sRGB new.png"
)
