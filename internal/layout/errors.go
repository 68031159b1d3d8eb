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

// WithMark returns an error that is a sentinel, too, without saying it twice.
func WithMark(err, sentinel error) error { return &marked{err, sentinel} }

// marked is an error that is a sentinel, too, without saying it twice.
type marked struct {
	error
	mark error
}

func (m *marked) Unwrap() []error { return []error{m.error, m.mark} }

// Inside reports whether n bytes at offset are in a file of that size.
func Inside(offset, n, size int64) error {
	if offset < 0 || n < 0 || offset > size || n > size-offset {
		return fmt.Errorf("bytes [%d, +%d) are not in a file of %d bytes: %w", offset, n, size, ErrCorrupt)
	}
	return nil
}

// WithoutPath takes the path out of a file error whose path the message already has.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
