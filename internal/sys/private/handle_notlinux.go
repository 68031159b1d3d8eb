//go:build !linux

package private

import (
	"errors"
	"os"
)

// Exchange exists on Linux only.
func Exchange(from *os.Root, name string, to *os.Root, newName string) error {
	return errors.ErrUnsupported
}

// Through returns "": there are such paths on Linux only.
func Through(*os.File) string { return "" }
