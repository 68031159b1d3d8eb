package view

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Name is the name of the file that belongs to a flat dataset.
const Name = "view.h5"

// Encode returns an HDF5 file for folder, with paths from there to the files of the dataset. The
// offsets of ragged fields are read if there are several shards, as they restart at 0 in each
// shard: then the joined offsets are in the HDF5 file, 8 bytes a record.
func Encode(d *store.Dataset, folder string) ([]byte, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	return encodeNames(d, func(path string) (string, error) { return filepath.Rel(from, path) })
}

// EncodeAbsolute is Encode for any folder: it names the files from the root of the file system.
func EncodeAbsolute(d *store.Dataset) ([]byte, error) {
	return encodeNames(d, func(path string) (string, error) { return path, nil })
}

// encodeNames encodes a view of a dataset. The view refers to each file by the name that the function name returns for
// the file's absolute path.
func encodeNames(d *store.Dataset, name func(path string) (string, error)) ([]byte, error) {
	if d.Manifest != nil && d.Manifest.Deleted != nil {
		return nil, fmt.Errorf("%s has deleted records, which a view of its files would show; write the others out: %s: %w",
			d.Path, shell.Rewrite(d.Path, ""), store.ErrUnsupported)
	}
	var failed error
	data, err := encodeView(d, func(path string) string {
		file, err := filepath.Abs(path)
		if err == nil {
			file, err = name(file)
		}
		failed = errors.Join(failed, err)
		return filepath.ToSlash(file)
	})
	return data, errors.Join(err, failed)
}

// encodeView encodes a view of a dataset. The view refers to each file by the name that the function file returns for
// the file's path.
func encodeView(d *store.Dataset, file func(path string) string) ([]byte, error) {
	if d.Format != "flat" {
		return nil, fmt.Errorf("view: %s is an HDF5 file itself", d.Path)
	}
	var objects []encode.Object
	columns := layout.Of(d).Columns
	for k := range columns {
		o, err := column(columns, k, file)
		if err != nil {
			return nil, fmt.Errorf("view: field %q: %w", d.Schema.Fields[columns[k].Field].Name, err)
		}
		objects = append(objects, o)
	}
	objects, err := Describe(objects, d.Schema)
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	head, body, err := encode.File(encode.HeadSize, objects, rootAttributes(d))
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	return append(head, body...), nil
}

// column describes column k, whose elements are in its files. Offsets in several files restart at 0 in each of them, so
// they are joined and written into the view.
func column(columns []layout.Column, k int, file func(string) string) (encode.Object, error) {
	c := &columns[k]
	o := encode.Object{Path: c.Path(), Element: encode.Element{DType: c.Spec.DType}, Dims: []int64{c.Rows}}
	for _, n := range c.Spec.Shape {
		o.Dims = append(o.Dims, int64(n))
	}
	if c.Part == layout.Offsets && len(c.Extents) != 1 {
		err := write.ConcatRows([][]layout.Column{columns}, k, func(rows []byte) error {
			o.Data = append(o.Data, rows...)
			return nil
		})
		if o.Data == nil { // there are no records
			o.Data = make([]byte, 8)
		}
		o.Dims = []int64{int64(len(o.Data) / 8)}
		return o, err
	}
	for _, e := range c.Extents {
		if e.Count > 0 {
			o.Files = append(o.Files, encode.Piece{Name: file(e.Path), Offset: e.Offset,
				Size: e.Count * int64(c.Spec.RecordBytes())})
		}
	}
	if len(o.Files) > encode.MaxFiles {
		return o, fmt.Errorf("%d shards are more than the %d that an HDF5 file can name; use a larger --shard-size",
			len(o.Files), encode.MaxFiles)
	}
	return o, nil
}
