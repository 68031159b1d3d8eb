package view

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/store"
)

// Name is what the file is called that belongs to a flat dataset.
const Name = "view.h5"

// Encode returns an HDF5 file that is to lie in folder. It names the files of the dataset from
// there, or with absolute from the root of the file system. The offsets of ragged fields are
// read where there are several shards, as they begin anew in each: these are in the file, 8
// bytes a record.
func Encode(d *store.Dataset, folder string, absolute bool) ([]byte, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	var failed error
	data, err := encode(d, func(path string) string {
		name, err := filepath.Abs(path)
		if err == nil && !absolute {
			name, err = filepath.Rel(from, name)
		}
		failed = errors.Join(failed, err)
		return filepath.ToSlash(name)
	})
	return data, errors.Join(err, failed)
}

// encode uses the names that file returns for paths.
func encode(d *store.Dataset, file func(path string) string) ([]byte, error) {
	if d.Format != "flat" {
		return nil, fmt.Errorf("hdf5: %s is an HDF5 file itself", d.Path)
	}
	w := newWriter()
	root := group{}
	for i, f := range d.Schema.Fields {
		if !f.Ragged {
			at, err := w.column(d.Column(i, store.Whole), attributesOf(f), file)
			if err != nil {
				return nil, fmt.Errorf("hdf5: field %q: %w", f.Name, err)
			}
			root.link(f.Name, at)
			continue
		}
		at, err := w.ragged(d, i, file)
		if err != nil {
			return nil, fmt.Errorf("hdf5: field %q: %w", f.Name, err)
		}
		root.link(f.Name, at)
	}
	if err := w.longAttributes(&root, d.Schema); err != nil {
		return nil, fmt.Errorf("hdf5: %w", err)
	}
	return w.finish(&root, rootAttributes(d))
}

// column writes a dataset whose elements are in the files of c.
func (w *writer) column(c *store.Column, attributes []store.Attribute, file func(string) string) (at int64, err error) {
	size := int64(c.Spec.RecordBytes())
	dims := []int64{c.Rows}
	for _, n := range c.Spec.Shape {
		dims = append(dims, int64(n))
	}
	var pieces []piece
	for _, e := range c.Extents {
		if e.Count > 0 {
			pieces = append(pieces, piece{file(e.Path), e.Offset, e.Count * size})
		}
	}
	if len(pieces) > maxPieces {
		return 0, fmt.Errorf("%d shards are more than the %d that an HDF5 file can name; use a larger --shard-size", len(pieces), maxPieces)
	}
	t, err := typeOf(c.Spec.DType)
	if err != nil {
		return 0, err
	}
	return w.external(t, dims, c.Rows*size, pieces, attributes)
}

// ragged writes a group of values and offsets.
func (w *writer) ragged(d *store.Dataset, field int, file func(string) string) (at int64, err error) {
	values, err := w.column(d.Column(field, store.Values), attributesOf(d.Schema.Fields[field]), file)
	if err != nil {
		return 0, err
	}
	c := d.Column(field, store.Offsets)
	g := group{}
	g.link(string(store.Values), values)
	if len(c.Extents) == 1 {
		offsets, err := w.column(c, nil, file)
		if err != nil {
			return 0, err
		}
		g.link(string(store.Offsets), offsets)
		return w.group(&g, nil)
	}
	data, err := joinOffsets(c)
	if err != nil {
		return 0, err
	}
	g.link(string(store.Offsets), w.data(int64Type, []int64{int64(len(data) / 8)}, data))
	return w.group(&g, nil)
}

// joinOffsets returns the offsets of all records from 0 on, and of the last one's end. Each
// extent has those of its own records.
func joinOffsets(c *store.Column) ([]byte, error) {
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

func readOffsets(e store.Extent) ([]byte, error) {
	f, err := os.Open(e.Path)
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
