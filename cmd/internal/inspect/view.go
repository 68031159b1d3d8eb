package inspect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/hdf5/view"
	"github.com/penstock/penstock/internal/shell"
	"github.com/penstock/penstock/store"
)

// ViewOptions configures View. The zero value is usable.
type ViewOptions struct {
	Output   string // file to write; "" means view.h5 in the dataset
	Absolute bool   // name the .npy files from the root of the file system
}

// Viewed is an HDF5 file that was made for a flat dataset.
type Viewed struct {
	Path     string   `json:"path"`
	Bytes    int64    `json:"bytes"`
	Records  int64    `json:"records"`
	Datasets []string `json:"datasets"`
	Absolute bool     `json:"absolute"` // h5py opens it from everywhere, but not once the dataset was moved
}

// View writes an HDF5 file through which others read the records of a flat dataset.
func View(path string, opts ViewOptions) (*Viewed, error) {
	d, err := flatDataset(path)
	if err != nil {
		return nil, err
	}
	v := &Viewed{Path: opts.Output, Records: d.Records, Absolute: opts.Absolute}
	if v.Path == "" {
		v.Path = filepath.Join(path, view.Name)
	}
	if err := cli.CheckWrite(v.Path); err != nil {
		return nil, err
	}
	data, err := view.Encode(d, filepath.Dir(v.Path), opts.Absolute)
	if err != nil {
		return nil, err
	}
	v.Bytes = int64(len(data))
	for _, c := range d.Columns {
		v.Datasets = append(v.Datasets, c.Path()[1:])
	}
	return v, cli.WriteFile(v.Path, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// flatDataset opens a folder.
func flatDataset(path string) (*store.Dataset, error) {
	p, err := look(path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if !p.flat {
		return nil, fmt.Errorf("%s: it is an HDF5 file already; a view is for a folder of .npy files", path)
	}
	d, err := p.locate()
	return d, p.withAdvice(err)
}

// checkView says what is wrong with the view in a dataset, "" if nothing is or there is none.
func checkView(d *store.Dataset) (string, error) {
	got, err := os.ReadFile(filepath.Join(d.Path, view.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, absolute := range []bool{false, true} {
		want, err := view.Encode(d, d.Path, absolute)
		if err != nil {
			return "", err
		}
		if bytes.Equal(got, want) {
			return "", nil
		}
	}
	return fmt.Sprintf("it is not the view of this dataset as it is now; make it again: %s", cmp.Or(shell.Command("inspect view", d.Path), "inspect view")), nil
}
