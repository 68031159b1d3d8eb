package zarr

import (
	"errors"
	"fmt"
)

// Errors of files that are not read.
var (
	ErrNotZarr     = errors.New("no Zarr")
	ErrCorrupt     = errors.New("corrupt")
	ErrUnsupported = errors.New("not supported")
)

// unsupported returns an error of that text.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrUnsupported)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrCorrupt)
}
