package imagefile

import (
	"errors"
	"fmt"
)

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
