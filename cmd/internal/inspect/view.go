package inspect

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/view"
)

// viewOptions configures writeView. The zero value is usable.
type viewOptions struct {
	Output   string // file to write; "" means view.h5 in the dataset
	Absolute bool   // refer to the .npy files by absolute paths
}

// viewFile is a written view.h5: an HDF5 file whose datasets have their bytes in the .npy files of
// a flat dataset (external storage, section IV.A.2.h of the HDF5 file format).
type viewFile struct {
	Path     string   `json:"path"`
	Bytes    int64    `json:"bytes"`
	Records  int64    `json:"records"`
	Datasets []string `json:"datasets"`
	Absolute bool     `json:"absolute"` // h5py opens it from every working directory, until the dataset is moved
}

// writeView writes the view of a flat dataset. Whether the output can be written is checked before
// the view is encoded.
func writeView(path string, opts viewOptions) (*viewFile, error) {
	d, err := flatDataset(path)
	if err != nil {
		return nil, err
	}
	v := &viewFile{Path: opts.Output, Records: d.Records, Absolute: opts.Absolute}
	if v.Path == "" {
		v.Path = filepath.Join(path, view.Name)
	}
	if err := cli.CheckWrite(v.Path); err != nil {
		return nil, err
	}
	data, err := encode(d, filepath.Dir(v.Path), opts)
	if err != nil {
		return nil, err
	}
	v.Bytes = int64(len(data))
	for _, c := range layout.Of(d).Columns {
		v.Datasets = append(v.Datasets, c.Path()[1:])
	}
	return v, cli.WriteFile(v.Path, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// encode returns the bytes of the view. With relative paths they depend on the folder of the file.
func encode(d *store.Dataset, folder string, opts viewOptions) ([]byte, error) {
	if opts.Absolute {
		return view.EncodeAbsolute(d)
	}
	return view.Encode(d, folder)
}

// flatDataset opens a flat dataset, and refuses other formats.
func flatDataset(path string) (*store.Dataset, error) {
	p, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if p.Zarr {
		return nil, fmt.Errorf("%s: it is Zarr; a view is for a folder of .npy files", path)
	}
	if !p.Flat {
		return nil, fmt.Errorf("%s: it is an HDF5 file already; a view is for a folder of .npy files", path)
	}
	d, err := p.Locate()
	return d, p.WithAdvice(err)
}
