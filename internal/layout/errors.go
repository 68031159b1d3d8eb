package layout

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Errors that package store exports.
var (
	// ErrCorrupt marks bytes that are not what the format or the manifest says.
	ErrCorrupt = meta.ErrCorrupt
	// ErrUnsupported marks a file that is valid, but not one that this version reads.
	ErrUnsupported = meta.ErrUnsupported
)

// WithMark returns an error with the text of err alone, which errors.Is takes for sentinel, too.
func WithMark(err, sentinel error) error { return &marked{err, sentinel} }

// marked is an error that errors.Is takes for a sentinel which its text does not mention.
type marked struct {
	error
	mark error
}

func (m *marked) Unwrap() []error { return []error{m.error, m.mark} }

// Inside checks that n bytes at offset are inside of a file of that size. It subtracts instead of adding, as the sum of
// two numbers from a hostile file could overflow.
func Inside(offset, n, size int64) error {
	if offset < 0 || n < 0 || offset > size || n > size-offset {
		return fmt.Errorf("bytes [%d, +%d) are not in a file of %d bytes: %w", offset, n, size, ErrCorrupt)
	}
	return nil
}

// WithoutPath removes the path from a file error, for messages that have the path already.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
