package preprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/hdf5/view"
	"github.com/penstock/penstock/store"
)

// viewProblems says why there can be no view.
func viewProblems(c Config) []string {
	switch {
	case !c.View:
		return nil
	case c.World.Size > 0:
		return []string{"--view: a part has none; make it of the whole dataset: preprocess merge, then inspect view"}
	case c.format() != formatFlat:
		return []string{"--view: DEST is an HDF5 file already; a view is for a folder of .npy files"}
	}
	return nil
}

// writeView writes the HDF5 view of the dataset that was made, if it shall have one or has one
// of the dataset before.
func writeView(c Config) error {
	if c.World.Size > 0 || c.format() != formatFlat {
		return nil
	}
	path := filepath.Join(c.Dest, view.Name)
	if _, err := os.Stat(path); !c.View && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d, err := store.OpenFlat(c.Dest)
	var data []byte
	if err == nil {
		data, err = view.Encode(d, c.Dest, false)
	}
	if err == nil {
		err = writeDurably(path, data, 0o666)
	}
	if err != nil {
		return fmt.Errorf("the dataset is complete, but not its view: %w", err)
	}
	return nil
}
