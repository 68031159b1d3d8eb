package imagefile

import (
	"errors"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/imagefile/tiff"
)

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
