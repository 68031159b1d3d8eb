package store

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrCorrupt marks bytes that are not what the format or the manifest says.
	ErrCorrupt = layout.ErrCorrupt
	// ErrUnsupported marks a file that is valid, but that this version does not read.
	ErrUnsupported = layout.ErrUnsupported
	// ErrMissing marks a field or a split that a dataset does not have.
	ErrMissing = errors.New("missing")
	// ErrExist marks a destination that is already there.
	ErrExist = errors.New("exists")
	// ErrView marks an HDF5 file through which other programs read a flat dataset. It is ErrUnsupported, too: the
	// dataset behind the view can be opened.
	ErrView = errors.New("a view")

	// ErrCommitted marks an append that was to be resumed and had been committed already.
	ErrCommitted = errors.New("committed already")
	// ErrBusy marks a destination that another process is building.
	ErrBusy = errors.New("busy")
)

// NoGenerations returns the error for a dataset without generations, where a generation or a change is asked for: one
// that penstock did not write, or one that refers to the records of other files. It is ErrUnsupported.
func NoGenerations(path string) error {
	return fmt.Errorf("%s keeps no generations and cannot be changed: datasets that penstock wrote do; to convert it, "+
		"run: %s: %w", path,
		shell.Rewrite(path, ""), ErrUnsupported)
}
