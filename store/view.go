package store

import (
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
)

// refuseView returns an error for a view, which says where the dataset behind it is; nil for any other file.
func refuseView(path string, file *meta.File) error {
	a, ok := file.Root.Attrs.Get("format")
	if !ok {
		return nil
	}
	if text, ok := a.Value.Text(); !ok || text != layout.HDF5View {
		return nil
	}
	for data := range file.All() {
		if len(data.External) == 0 {
			continue
		}
		folder := filepath.Dir(filepath.FromSlash(data.External[0].Name))
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(filepath.Dir(path), folder)
		}
		err := fmt.Errorf("it is a view, which names the records of a flat dataset for programs that read HDF5; open the "+
			"dataset instead: %s", folder)
		return layout.WithMark(layout.WithMark(err, ErrView), ErrUnsupported)
	}
	return nil
}
