// Package imagefile turns image files into pixels: the ones that Pillow's
// Image.open(f).convert("RGB") gives, or convert("L").
//
// That means: the format is sniffed from the content. Alpha is dropped, neither blended
// nor premultiplied, unless Options.Alpha has it blended; palettes are expanded; CMYK becomes RGB by Pillow's formula, Adobe's
// inversion undone. Color profiles are ignored, and so is EXIF orientation unless asked
// for, but that of a TIFF always counts. Of an animation the first frame is taken. Gray is
// (19595 R + 38470 G + 7471 B + 32768) >> 16. A JPEG goes through libjpeg's accurate integer
// transform, its triangle filter for chroma ("fancy upsampling") and its conversion to RGB,
// a WebP through libwebp's filter and conversion, bit for bit. A progressive JPEG whose scans
// are not all there is completed by guesses, as libjpeg-turbo 3 does.
//
// It differs from Pillow on purpose in two things: samples of 16 bits are reduced to their
// high byte also in gray images, where Pillow clips them at 255, and a file that is cut
// short or corrupt is an error, where other decoders return gray or green.
//
// JPEG, BMP and TIFF are decoded here, other formats by Go libraries, whole.
package imagefile

//go:generate go run -C _asm . -pkg imagefile -out ../kernels_amd64.s -stubs ../kernels_amd64.go
//go:generate go run -C ../kernel/_neon . -pkg imagefile -out ../../imagefile/kernels_arm64.s -stubs ../../imagefile/kernels_arm64.go

import (
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/imagefile/tiff"
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

// A Decoder opens one image after the other and reuses its memory, which grows to what the
// largest needed. It serves one goroutine.
type Decoder struct {
	opt     Options
	raster  raster
	jpeg    jpegSource
	pix     []byte // of a decoded image, if it is not the library's
	gray    []byte // the same in one channel
	turned  []byte // of an image that was turned
	palette [256][4]byte
	strips  *Decoder // of JPEG inside of TIFF
}

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
// go unnoticed, and so may corruption behind the first frame. The built-in decoder
// detects more corrupt codes than libjpeg-turbo, which takes a run that leads out of a block for its end. All
// errors of a file are an *Error, at some depth.
func (d *Decoder) Open(data []byte) (pixel.Source, error) {
	c, err := ReadConfig(data)
	if err != nil {
		return nil, err
	}
	if err := c.Check(d.opt.MaxPixels); err != nil {
		return nil, err
	}
	src, err := d.open(c, data)
	if err != nil {
		return nil, err
	}
	if c.turned(d.opt.Orient) {
		return d.turn(src, c.Orientation)
	}
	return src, nil
}

func (d *Decoder) open(c Config, data []byte) (pixel.Source, error) {
	if c.Format == JPEG {
		return d.openJPEG(data)
	}
	var m image.Image
	err := guard(c.Format, func() (err error) {
		m, err = d.decodeWhole(c, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.fromImage(c, m)
}

// openJPEG opens a file once its markers are found complete.
func (d *Decoder) openJPEG(data []byte) (pixel.Source, error) {
	h, err := parseJPEG(data)
	if err != nil {
		return nil, err
	}
	if err := h.checkEnd(data); err != nil {
		return nil, err
	}
	if err := h.checkSize(len(data) - h.scan); err != nil {
		return nil, err
	}
	return d.openScans(&h, data)
}

func (d *Decoder) decodeWhole(c Config, data []byte) (image.Image, error) {
	switch c.Format {
	case PNG:
		return decodePNG(c, data)
	case GIF:
		return d.openGIF(data)
	case BMP:
		return d.openBMP(data)
	case TIFF:
		return d.decodeTIFF(data)
	case WebP:
		return d.openWebP(data)
	case PNM:
		return decodePNM(data)
	}
	return nil, errors.New("no decoder for this format")
}

// Kinds of errors; each error of this package is one of these to errors.Is.
var (
	ErrNotImage    = errors.New("not an image")        // no format that this package reads
	ErrCorrupt     = errors.New("corrupt image")       // malformed or truncated
	ErrUnsupported = errors.New("unsupported image")   // valid, but not readable here
	ErrTooLarge    = errors.New("image is too large")  // more pixels than Options.MaxPixels
	errOutside     = errors.New("outside of an image") // a caller's rectangle
)

// An Error is the error of a file. Its text names the format and no path.
type Error struct {
	Format Format // "" if it is none
	Kind   error  // one of the Err values above
	Msg    string
}

func (e *Error) Error() string {
	if e.Format == "" {
		return e.Msg
	}
	return string(e.Format) + ": " + e.Msg
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

func corrupt(f Format, format string, args ...any) error {
	return &Error{f, ErrCorrupt, fmt.Sprintf(format, args...)}
}

func unsupported(f Format, format string, args ...any) error {
	return &Error{f, ErrUnsupported, fmt.Sprintf(format, args...)}
}

// fromLibrary gives the error of a format library the form of an Error: its package
// prefix goes, a bare end of file becomes a sentence.
func fromLibrary(f Format, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt(f, "truncated: the file ends before the image does")
	}
	msg := err.Error()
	for _, p := range []string{string(f) + ": ", string(f) + ": ", "invalid format: ", "unsupported feature: "} {
		msg = strings.TrimPrefix(msg, p) // the first is there twice where a library wraps its own error
	}
	if strings.Contains(msg, "not enough") || strings.HasSuffix(msg, "EOF") {
		return corrupt(f, "truncated: the file ends before the image does (%s)", msg)
	}
	if text := tiff.UnsupportedError(""); errors.As(err, &text) {
		return unsupported(f, "not supported: %s", msg) // which says what to do
	}
	if isUnsupported(err) {
		return unsupported(f, "not supported: %s; convert it to PNG", msg)
	}
	return corrupt(f, "%s", msg)
}

func isUnsupported(err error) bool {
	var j jpeg.UnsupportedError
	var p png.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &p)
}
