package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/view"
)

// viewProblem returns what is wrong with the view.h5 of a dataset, "" if it is right or does not
// exist. The view is a function of the dataset, so it is encoded again and compared, with relative
// and with absolute paths.
func viewProblem(d *store.Dataset) (string, error) {
	got, err := fs.ReadFile(vfs.Folder(d.Path), view.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if d.Manifest.Deleted != nil {
		return "it shows the records that are deleted, too; remove it", nil
	}
	relative, err := view.Encode(d, d.Path)
	if err != nil {
		return "", err
	}
	absolute, err := view.EncodeAbsolute(d)
	if err != nil {
		return "", err
	}
	if bytes.Equal(got, relative) || bytes.Equal(got, absolute) {
		return "", nil
	}
	return fmt.Sprintf("it is not the view of this dataset as it is now; make it again: %s",
		shell.On("inspect view", d.Path)), nil
}
