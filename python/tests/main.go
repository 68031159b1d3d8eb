// Tests makes the datasets that the tests of the Python package read, and what package
// mmapds reads in them:
//
//	go run . FOLDER
//
// writes datasets, and beside each, as DATASET.FIELD.bin, all values of a field. "go test" runs
// the tests of the package with the first python3 that has NumPy.
//
// It is a module of its own, as users of the Go module have no need for it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
}

// write makes everything in a folder that is there.
func write(folder string) error {
	for _, d := range datasets {
		if err := d.writeFlat(folder); err != nil {
			return err
		}
	}
	return types.writeHDF5(folder)
}

// dataset is something to be read.
type dataset struct {
	name       string
	schema     store.Schema
	records    int
	shardBytes int64
}

// writeFlat makes the dataset as a folder, and the values that mmapds finds in it.
func (d dataset) writeFlat(folder string) error {
	dest := filepath.Join(folder, d.name)
	w, err := store.CreateFlat(dest, d.schema, store.FlatOptions{ShardBytes: d.shardBytes})
	if err != nil {
		return err
	}
	if err := d.fill(w); err != nil {
		return err
	}
	return writeValues(dest)
}

// writeHDF5 makes it as a file, or says that it cannot.
func (d dataset) writeHDF5(folder string) error {
	dest := filepath.Join(folder, d.name+".h5")
	w, err := hdf5.Create(dest, d.schema, hdf5.Options{Records: int64(d.records)})
	if errors.Is(err, store.ErrUnsupported) {
		fmt.Fprintln(os.Stderr, "tests: no HDF5 file:", err)
		return nil
	}
	if err != nil {
		return err
	}
	return d.fill(w)
}

func (d dataset) fill(w store.Writer) error {
	defer w.Close()
	r := store.NewRecord(d.schema)
	for i := range d.records {
		for k, f := range d.schema.Fields {
			value(f, i, r.Values[k])
		}
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err := w.Commit(store.Info{})
	return err
}

// writeValues writes the bytes of every field as package mmapds reads them.
func writeValues(dest string) error {
	ds, err := mmapds.Open(dest)
	if err != nil {
		return err
	}
	defer ds.Close()
	for _, f := range ds.Schema().Fields {
		v, err := ds.Run(f.Name, 0, ds.Len())
		if err != nil {
			return err
		}
		if err := os.WriteFile(dest+"."+f.Name+".bin", v.Bytes(), 0o666); err != nil {
			return err
		}
		if err := writeFloats(dest+"."+f.Name+".f32", f, v); err != nil {
			return err
		}
	}
	return nil
}
