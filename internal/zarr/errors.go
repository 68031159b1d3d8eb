package zarr

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// ErrNotZarr says that a folder has no metadata of Zarr. Other errors are meta.ErrCorrupt or meta.ErrUnsupported, the
// same as for HDF5, so that callers need not know the format.
var ErrNotZarr = errors.New("no Zarr")

// unsupported returns an error that is meta.ErrUnsupported.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), meta.ErrUnsupported)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), meta.ErrCorrupt)
}
