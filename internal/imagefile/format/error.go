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

// Kinds of errors; each error of this package is one of these to errors.Is.
var (
	ErrNotImage    = errors.New("not an image")        // no format that this package reads
	ErrCorrupt     = errors.New("corrupt image")       // malformed or truncated
	ErrUnsupported = errors.New("unsupported image")   // valid, but not readable here
	ErrTooLarge    = errors.New("image is too large")  // more pixels than Options.MaxPixels
	ErrOutside     = errors.New("outside of an image") // a caller's rectangle
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

func Corrupt(f Format, format string, args ...any) error {
	return &Error{f, ErrCorrupt, fmt.Sprintf(format, args...)}
}

func Unsupported(f Format, format string, args ...any) error {
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
		return Corrupt(f, "truncated: the file ends before the image does")
	}
	msg := err.Error()
	for _, p := range []string{string(f) + ": ", string(f) + ": ", "invalid format: ", "unsupported feature: "} {
		msg = strings.TrimPrefix(msg, p) // the first is in the list twice: libraries wrap their own errors
	}
	if strings.Contains(msg, "not enough") || strings.HasSuffix(msg, "EOF") {
		return Corrupt(f, "truncated: the file ends before the image does (%s)", msg)
	}
	if text := tiff.UnsupportedError(""); errors.As(err, &text) {
		return Unsupported(f, "not supported: %s", msg) // which says what to do
	}
	if isUnsupported(err) {
		return Unsupported(f, "not supported: %s; convert it to PNG", msg)
	}
	return Corrupt(f, "%s", msg)
}

// isUnsupported reports whether a decoder of Go's library knows the format and not the variant: users can convert such
// a file, and must replace a corrupt one.
func isUnsupported(err error) bool {
	var j jpeg.UnsupportedError
	var p png.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &p)
}

// Guard runs a decoder of another library on bytes that nobody has checked: its panic
// becomes an error, and its errors get this package's form.
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

// CheckRect refuses a rectangle that is not within w x h.
func CheckRect(r image.Rectangle, w, h int) error {
	if r.Empty() || r.In(image.Rect(0, 0, w, h)) {
		return nil
	}
	return fmt.Errorf("imagefile: rectangle %v: %w of %dx%d", r, ErrOutside, w, h)
}
