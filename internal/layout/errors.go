package layout

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/zarr"
)

// Errors that package store exports.
var (
	// ErrCorrupt marks bytes that are not what the format or the manifest says.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported marks a file that is valid, but not one that this version reads.
	ErrUnsupported = errors.New("unsupported")
)

// Mark wraps errors of packages internal/hdf5/meta and internal/zarr so that they match ErrCorrupt
// or ErrUnsupported as well. It returns other errors, and nil, as they are.
func Mark(err error) error {
	switch {
	case (errors.Is(err, meta.ErrCorrupt) || errors.Is(err, zarr.ErrCorrupt)) && !errors.Is(err, ErrCorrupt):
		return &marked{err, ErrCorrupt}
	case (errors.Is(err, meta.ErrUnsupported) || errors.Is(err, zarr.ErrUnsupported)) && !errors.Is(err, ErrUnsupported):
		return &marked{err, ErrUnsupported}
	}
	return err
}

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
