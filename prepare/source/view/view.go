// Package view is the source that is a view of datasets: a .view.json file. Its samples are the records, in the
// order of the view.
package view

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
)

// Open opens a view and the datasets that it is of, which are files of this machine.
func Open(ctx context.Context, path string, _ source.Options, selection []column.Selection) (source.Source, error) {
	ds, err := views.Open(ctx, path, views.Options{})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	var columns []array.Column
	for _, f := range ds.Fields {
		columns = append(columns, newColumn(ctx, ds.Source, f))
	}
	chosen, err := array.Select(columns, selection)
	if err != nil {
		ds.Close()
		return nil, err
	}
	return array.New("view", path, source.BaseName(path), chosen, ds)
}

// newColumn returns a field of a view.
func newColumn(ctx context.Context, src loader.Source, f store.Field) array.Column {
	r := &records{ctx: ctx, src: src, field: f}
	r.ragged, _ = src.(loader.RaggedSource)
	return array.Column{
		Field: source.Field{Field: f, Origin: f.Name}, Count: int64(src.Len()), At: r.at,
		Open: func() (array.Cursor, error) { return &cursor{records: r}, nil },
	}
}

// records are the values of a field.
type records struct {
	ctx    context.Context
	src    loader.Source
	ragged loader.RaggedSource
	field  store.Field
}

// at returns record i in the memory of buf, or in more.
func (r *records) at(i int64, buf []byte) ([]byte, error) {
	data, _, err := r.read([]int{int(i)}, buf)
	return data, err
}

// read returns records in the memory of buf, or in more, and where each ends.
func (r *records) read(indices []int, buf []byte) (data []byte, offsets []int64, err error) {
	if err := r.src.Retain(); err != nil {
		return buf, nil, err
	}
	defer r.src.Release()
	size := int64(r.field.RecordBytes())
	offsets = make([]int64, len(indices)+1)
	if r.field.Ragged {
		data, err = r.ragged.GatherRagged(r.ctx, r.field.Name, indices, offsets, buf)
		for i := range offsets {
			offsets[i] *= size
		}
		return data, offsets, err
	}
	for i := range offsets {
		offsets[i] = int64(i) * size
	}
	n := int(offsets[len(indices)])
	data = slices.Grow(buf[:0], n)[:n]
	return data, offsets, r.src.Gather(r.ctx, r.field.Name, indices, data)
}

// blockRecords is how many records are read at a time, unless they are long.
const blockRecords = 256

// cursor gives one record after the other. Each block is separate memory, as its records are used independently.
type cursor struct {
	*records
	next    int // record
	data    []byte
	offsets []int64
}

// Next returns the next record.
func (c *cursor) Next() ([]byte, error) {
	if len(c.offsets) < 2 {
		n := min(blockRecords, max(1, (4<<20)/max(1, c.field.RecordBytes())), c.src.Len()-c.next)
		if n <= 0 {
			return nil, io.EOF
		}
		indices := make([]int, n)
		for i := range indices {
			indices[i] = c.next + i
		}
		var err error
		if c.data, c.offsets, err = c.read(indices, nil); err != nil {
			return nil, err
		}
		c.next += n
	}
	a, b := c.offsets[0], c.offsets[1]
	c.offsets = c.offsets[1:]
	return c.data[a:b:b], nil
}

// Close has nothing to close.
func (c *cursor) Close() error { return nil }
