//go:build !cgo

package hdf5

import (
	"fmt"

	"github.com/penstock/penstock/store"
)

// Create needs cgo; without it it answers with an error that wraps store.ErrUnsupported and
// leaves everything as it is.
func Create(dest string, _ store.Schema, _ Options) (store.Writer, error) {
	return nil, fmt.Errorf("store: create %q: writing HDF5 is %w in this build, which has no cgo: "+
		"install gcc and libhdf5-dev and build with CGO_ENABLED=1, or write a flat folder", dest, store.ErrUnsupported)
}

// Version says that there is no libhdf5 in this build.
func Version() string { return "no HDF5 (built without cgo)" }
