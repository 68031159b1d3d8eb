package store

import (
	"errors"

	"github.com/penstock/penstock/internal/layout"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrCorrupt marks bytes that are not what the format or the manifest says.
	ErrCorrupt = layout.ErrCorrupt
	// ErrUnsupported marks a file that is valid, but not one that this version reads.
	ErrUnsupported = layout.ErrUnsupported
	// ErrExist marks a destination that is already there.
	ErrExist = errors.New("exists")
	// ErrView marks an HDF5 file through which others read a flat dataset. It is ErrUnsupported,
	// too: what it is a view of can be opened.
	ErrView = errors.New("a view")

	// ErrCommitted marks an append that was to be resumed, but had come to its end.
	ErrCommitted = errors.New("committed already")
	// ErrBusy marks a destination that another process is building.
	ErrBusy = errors.New("busy")
)
