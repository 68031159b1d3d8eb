package format

import (
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/imagefile/tiff"
)

// Kinds of errors. errors.Is finds one of these kinds in every error of this package and of the
// decoders.
var (
	ErrNotImage    = errors.New("not an image")        // no format that is read
	ErrCorrupt     = errors.New("corrupt image")       // malformed or truncated
	ErrUnsupported = errors.New("unsupported image")   // valid, but not read here
	ErrTooLarge    = errors.New("image is too large")  // more pixels than Options.MaxPixels
	ErrOutside     = errors.New("outside of an image") // a rectangle of the caller
)

// An Error is the error of a file. Its text names the format and not the path, which the caller
// knows.
type Error struct {
	Format Format // "" if the format is unknown
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

// Corrupt returns an Error of kind ErrCorrupt.
func Corrupt(f Format, format string, args ...any) error {
	return &Error{f, ErrCorrupt, fmt.Sprintf(format, args...)}
}

// Unsupported returns an Error of kind ErrUnsupported. The text says what to do about the file.
func Unsupported(f Format, format string, args ...any) error {
	return &Error{f, ErrUnsupported, fmt.Sprintf(format, args...)}
}

// fromLibrary turns the error of a library into an Error: the library's name is removed from the
// text, and a bare end of file becomes a sentence.
func fromLibrary(f Format, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Corrupt(f, "truncated: the file ends before the image does")
	}
	msg := err.Error()
	for _, p := range []string{string(f) + ": ", string(f) + ": ", "invalid format: ", "unsupported feature: "} {
		msg = strings.TrimPrefix(msg, p) // libraries wrap their own errors, so the first prefix is tried twice
	}
	if strings.Contains(msg, "not enough") || strings.HasSuffix(msg, "EOF") {
		return Corrupt(f, "truncated: the file ends before the image does (%s)", msg)
	}
	if text := tiff.UnsupportedError(""); errors.As(err, &text) {
		return Unsupported(f, "not supported: %s", msg) // package tiff says what to do
	}
	if isUnsupported(err) {
		return Unsupported(f, "not supported: %s; convert it to PNG", msg)
	}
	return Corrupt(f, "%s", msg)
}

// isUnsupported reports whether a decoder of Go's library knows the format but not the variant:
// users can convert such a file, while a corrupt file has to be replaced.
func isUnsupported(err error) bool {
	var j jpeg.UnsupportedError
	var p png.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &p)
}

// Guard runs a decoder on bytes that nobody has checked. A panic becomes an error, and errors get
// the form of this package.
func Guard(f Format, decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Corrupt(f, "the decoder failed on it (%v)", p)
		}
	}()
	if err := decode(); err != nil {
		return fromLibrary(f, err)
	}
	return nil
}

// CheckRect returns an error for a rectangle that is not within an image of w by h pixels.
func CheckRect(r image.Rectangle, w, h int) error {
	if r.Empty() || r.In(image.Rect(0, 0, w, h)) {
		return nil
	}
	return fmt.Errorf("imagefile: rectangle %v: %w of %dx%d", r, ErrOutside, w, h)
}
