// Tests makes the datasets that the tests of the Python package read, and what package
// mmapds reads in them:
//
//	go run . FOLDER
//
// writes datasets, and next to each, as DATASET.FIELD.bin, all values of a field. "go test" runs
// the tests of the package with the first python3 that has NumPy.
//
// It is a module of its own, as users of the Go module have no need for it.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/zarr"
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

// write makes everything in an existing folder.
func write(folder string) error {
	for _, d := range datasets {
		if err := d.writeFlat(folder); err != nil {
			return err
		}
	}
	return errors.Join(types.writeHDF5(folder), ragged.writeHDF5(folder), types.writeZarr(folder), ragged.writeZarr(folder), writeLoaded(folder), writePhotos(folder))
}

// dataset is something to be read.
type dataset struct {
	name       string
	schema     store.Schema
	records    int
	shardBytes int64
	splits     []string // the first has four of five records, the second the fifth, others none
}

// writeFlat makes the dataset as a folder, and the values that mmapds finds in it.
func (d dataset) writeFlat(folder string) error {
	dest := filepath.Join(folder, d.name)
	w, err := flat.Create(dest, d.schema, flat.Options{ShardBytes: d.shardBytes, Splits: d.splits})
	if err != nil {
		return err
	}
	if err := d.fill(w); err != nil {
		return err
	}
	for _, split := range append([]string{""}, d.splits[:min(2, len(d.splits))]...) {
		if err := writeValues(dest, split); err != nil {
			return err
		}
	}
	return nil
}

// writeHDF5 makes it as a file, or says that it cannot.
func (d dataset) writeHDF5(folder string) error {
	dest := filepath.Join(folder, d.name+".h5")
	w, err := hdf5.Create(dest, d.schema, hdf5.Options{Records: int64(d.records), Splits: d.splits})
	if errors.Is(err, store.ErrUnsupported) {
		fmt.Fprintln(os.Stderr, "tests: no HDF5 file:", err)
		return nil
	}
	if err != nil {
		return err
	}
	return d.fill(w)
}

// writeZarr makes it as a folder of Zarr.
func (d dataset) writeZarr(folder string) error {
	w, err := zarr.Create(filepath.Join(folder, d.name+".zarr"), d.schema, zarr.Options{ShardBytes: d.shardBytes, Splits: d.splits})
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
			if f.Ragged {
				r.Values[k] = append(r.Values[k][:0], make([]byte, rows(f, i)*f.RecordBytes())...)
			}
			value(f, i, r.Values[k])
		}
		if len(d.splits) > 0 {
			r.Split = d.splits[i%5/4]
		}
		if err := w.Append(r); err != nil {
			return err
		}
	}
	_, err := w.Commit(store.Info{})
	return err
}

// writeValues writes the bytes of every field as package mmapds reads them.
func writeValues(dest, split string) error {
	ds, err := mmapds.Open(dest, mmapds.WithSplit(split))
	if err != nil {
		return err
	}
	defer ds.Close()
	if split != "" {
		dest += "." + split
	}
	for _, f := range ds.Schema().Fields {
		name := dest + "." + f.Name
		if f.Ragged {
			err = writeRagged(name, ds, f)
		} else {
			err = writeFixed(name, ds, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeFixed(name string, ds *mmapds.Dataset, f store.Field) error {
	v, err := ds.Slice(f.Name, 0, ds.Len())
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(name+".bin", v.Bytes(), 0o666), writeFloats(name+".f32", f, v))
}

func writeRagged(name string, ds *mmapds.Dataset, f store.Field) error {
	offsets := make([]int64, ds.Len()+1)
	v, err := ds.SliceRagged(f.Name, 0, ds.Len(), offsets)
	if err != nil {
		return err
	}
	var data []byte
	for _, o := range offsets {
		data = binary.LittleEndian.AppendUint64(data, uint64(o))
	}
	return errors.Join(os.WriteFile(name+".bin", v.Bytes(), 0o666), os.WriteFile(name+".offsets", data, 0o666))
}
