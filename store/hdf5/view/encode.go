package view

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
)

// Name is the name of the file that belongs to a flat dataset.
const Name = "view.h5"

// Encode returns an HDF5 file for folder, with paths from there to the files of the dataset. The
// offsets of ragged fields are read if there are several shards, as they restart at 0 in each:
// these are in the file, 8 bytes a record.
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

// encodeNames uses the names that name returns for absolute paths.
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

// encodeView uses the names that file returns for paths.
func encodeView(d *store.Dataset, file func(path string) string) ([]byte, error) {
	if d.Format != "flat" {
		return nil, fmt.Errorf("view: %s is an HDF5 file itself", d.Path)
	}
	var objects []encode.Object
	columns := layout.Of(d).Columns
	for k := range columns {
		o, err := column(&columns[k], file)
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

// column describes a column whose elements are in its files. Offsets in several files restart at 0
// in each of them, so they are joined and written into this one.
func column(c *layout.Column, file func(string) string) (encode.Object, error) {
	o := encode.Object{Path: c.Path(), Element: encode.Element{DType: c.Spec.DType}, Dims: []int64{c.Rows}}
	for _, n := range c.Spec.Shape {
		o.Dims = append(o.Dims, int64(n))
	}
	if c.Part == layout.Offsets && len(c.Extents) != 1 {
		data, err := joinOffsets(c)
		o.Data, o.Dims = data, []int64{int64(len(data) / 8)}
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

// joinOffsets returns the offsets of all records from 0 on, and the end of the last record. Each extent counts the
// offsets of its own records from 0.
func joinOffsets(c *layout.Column) ([]byte, error) {
	out := make([]byte, 8, 8*(c.Rows+1))
	total := uint64(0)
	for _, e := range c.Extents {
		list, err := readOffsets(e)
		if err != nil {
			return nil, err
		}
		first := binary.LittleEndian.Uint64(list)
		for i := 8; i < len(list); i += 8 {
			out = binary.LittleEndian.AppendUint64(out, total+binary.LittleEndian.Uint64(list[i:])-first)
		}
		total = binary.LittleEndian.Uint64(out[len(out)-8:])
	}
	return out, nil
}

// readOffsets reads the offsets of one extent, with the end of its last record.
func readOffsets(e layout.Extent) ([]byte, error) {
	f, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list := make([]byte, 8*e.Count)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: it has no offsets: %w", e.Path, store.ErrCorrupt)
	}
	if _, err := f.ReadAt(list, e.Offset); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Path, err)
	}
	return list, nil
}
