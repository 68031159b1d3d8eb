package hdf5

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// trim returns a path without slashes at its ends: HDF5 writes "/a/b", and people write "a/b".
func trim(path string) string { return strings.Trim(path, "/") }

// Columns returns the selected columns, and the datasets and links that make no column. Without a selection it
// returns all columns that make a field. Then a dataset with records that cannot be read is an error, as a conversion
// that leaves data out in silence would look complete. Excepted are datasets that cannot have a value for each
// record: their elements are not numbers, and their length differs from the length of the datasets of numbers.
func (f *File) Columns(selection []column.Selection) (columns []array.Column, bad array.Rejections, err error) {
	if err := f.frame(); err != nil && len(selection) == 0 {
		return nil, nil, err
	}
	var unread []unreadDataset
	var lengths []int64
	for d := range f.meta.Data() {
		// Coordinates are compared with the lengths of all other datasets.
		if d.Err == nil && len(d.Dims) > 0 && !d.IsCoordinate() {
			lengths = append(lengths, d.Dims[0])
		}
	}
	whole := make(map[string]bool) // columns that are a whole dataset of numbers
	selection = append([]column.Selection(nil), selection...)
	for d := range f.meta.Data() {
		// netCDF-4 stores a dimension without coordinates as a dataset, too.
		if len(selection) == 0 && d.IsDimension() {
			bad = append(bad, array.Rejection{Name: d.Path, Err: errors.New("a dimension of netCDF without values")})
			continue
		}
		if len(selection) == 0 && d.IsCoordinate() && len(lengths) > 0 && !slices.Contains(lengths, d.Records()) {
			bad = append(bad, array.Rejection{Name: d.Path, Err: errors.New("coordinates of another axis")})
			continue
		}
		list, err := f.columns(d, enumerationWanted(selection, d))
		_, noField := d.Spec()
		if err == nil {
			columns = append(columns, list...)
			selection = expand(selection, trim(d.Path), list)
			whole[trim(d.Path)] = noField == nil
			continue
		}
		// The general error would only say that references are not supported.
		if cell := cellError(d); cell != nil {
			err = cell
		}
		unread = append(unread, unreadDataset{d, err})
	}
	bad, missed := split(unread, lengthOf(columns, whole), bad)
	nowhere, elsewhere := f.unfollowed()
	bad, missed = append(bad, nowhere...), append(missed, elsewhere...)
	if err := errors.Join(bad.Selected(selection), missed.Selected(selection)); err != nil {
		return nil, nil, err
	}
	if len(selection) == 0 {
		if len(missed) > 0 {
			return nil, nil, missed.All(columns)
		}
		if len(columns) == 0 && len(bad) > 0 {
			return nil, nil, bad.All(nil)
		}
		columns, more := ofOneLength(columns, whole)
		array.FindImages(columns)
		return columns, append(bad, more...), nil
	}
	columns, err = array.Select(columns, selection)
	array.FindImages(columns)
	return columns, bad, err
}

// enumerated says how an enumeration becomes a field.
type enumerated uint8

const (
	asItIs    enumerated = iota // a label if its numbers are 0 to n-1, otherwise numbers
	asNumbers                   // numbers
	asLabel                     // a label whose classes are sorted by their numbers
)

// enumerationWanted returns how a selection asks for an enumeration: by a type. It clears the type in the selection,
// since the type is fulfilled here and no other dataset is read as a type that is given.
func enumerationWanted(selection []column.Selection, d *meta.Dataset) enumerated {
	if d.Err != nil || d.Type.Class != meta.Enum || d.Type.IsBool() {
		return asItIs
	}
	for i, w := range selection {
		if trim(w.Column) != trim(d.Path) {
			continue
		}
		switch w.Type {
		case d.Type.Base.DType().String():
			selection[i].Type = ""
			return asNumbers
		case "label":
			selection[i].Type = ""
			return asLabel
		}
	}
	return asItIs
}

// expand replaces a dataset that makes several columns, such as a compound, by these columns in a selection.
func expand(selection []column.Selection, path string, columns []array.Column) (list []column.Selection) {
	for _, w := range selection {
		if trim(w.Column) != path || len(columns) == 1 && columns[0].Field.Origin == path {
			list = append(list, w)
			continue
		}
		for _, c := range columns {
			one := column.Selection{Column: c.Field.Origin, Type: w.Type}
			if w.Field != "" {
				one.Field = layout.FieldName(w.Field + strings.TrimPrefix(c.Field.Origin, path))
			}
			list = append(list, one)
		}
	}
	return list
}

// unreadDataset is a dataset that makes no column, and the reason.
type unreadDataset struct {
	*meta.Dataset
	err error
}

// split adds the datasets that cannot have a value for each record to bad, and returns in missed the rejected
// datasets that may hold records. bad is only reported, missed is an error.
func split(unread []unreadDataset, length int64, bad array.Rejections) (rejected, missed array.Rejections) {
	for _, d := range unread {
		r := array.Rejection{Name: d.Path, Err: d.err}
		_, noNumbers := d.Spec()
		switch {
		case d.Err == nil && (d.Null || len(d.Dims) == 0 || d.Type.Class == meta.Reference),
			d.Err == nil && noNumbers != nil && length >= 0 && d.Records() != length:
			bad = append(bad, r)
		default:
			missed = append(missed, r)
		}
	}
	return bad, missed
}

// lengthOf returns the number of records of the datasets of numbers; -1 if the numbers differ or there is no such
// dataset.
func lengthOf(columns []array.Column, whole map[string]bool) int64 {
	length := int64(-1)
	for _, c := range columns {
		if !whole[c.Field.Origin] {
			continue
		}
		if length >= 0 && length != c.Count {
			return -1
		}
		length = c.Count
	}
	return length
}

// ofOneLength leaves out columns that are not datasets of numbers and do not have the length of the datasets of
// numbers: lists of class names, for instance, which are no records.
func ofOneLength(columns []array.Column, whole map[string]bool) (list []array.Column, bad array.Rejections) {
	length := lengthOf(columns, whole)
	for _, c := range columns {
		if length >= 0 && c.Count != length && !whole[c.Field.Origin] {
			bad = append(bad,
				array.Rejection{Name: "/" + c.Field.Origin, Err: fmt.Errorf("%d records, not %d", c.Count, length)})
			continue
		}
		list = append(list, c)
	}
	return list, bad
}

// Fields returns the fields that a dataset makes, or why it makes none. It reads only the dataset's metadata.
func Fields(d *meta.Dataset) (list []source.Field, err error) {
	all, err := parts(d)
	for _, p := range all {
		list = append(list, p.field)
	}
	return list, err
}

// columns returns a dataset as columns. A dataset of numbers is one column that is read straight into the rows of
// records. Members of compounds, labels and texts share blocks, so that each record is read once for all of its
// columns.
func (f *File) columns(d *meta.Dataset, as enumerated) ([]array.Column, error) {
	list, err := parts(d)
	if err != nil {
		return nil, err
	}
	switch p := &list[0]; {
	case as == asNumbers && p.label:
		p.label, p.field.Field = false, store.NewField(p.field.Name, d.Type.Base.DType())
	case as == asLabel && !p.label:
		if err := p.renumber(); err != nil {
			return nil, err
		}
		f.Hints = append(f.Hints, fmt.Sprintf("%s: the numbers %v of its enumeration are the labels 0 to %d", trim(d.Path),
			p.numbers, len(p.numbers)-1))
	}
	r, err := f.records(d)
	if err != nil {
		return nil, err
	}
	if size := r.RecordBytes(); size < 1 || size > source.MaxValue {
		return nil, fmt.Errorf("records of %d bytes: %w", size, meta.ErrUnsupported)
	}
	// Readers give numbers in this machine's byte order, except the members of compounds.
	if len(list) == 1 && list[0].plain() && (d.Type.Class != meta.Compound || !list[0].typ.BigEndian) {
		return []array.Column{f.whole(d, r, list[0].field)}, nil
	}
	// All columns of the dataset share it.
	b := &blocks{ctx: f.ctx, r: r, step: blockRecords(d, r.RecordBytes())}
	heap := d.Heap()
	var columns []array.Column
	for _, p := range list {
		c := (&partColumn{part: p, blocks: b, heap: heap, native: d.Type.Class != meta.Compound}).column(d.Records())
		if p.files && !c.HasImages() {
			return nil, p.severalLists()
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// plain reports whether the bytes of a record are the value of the part, so that the record needs no decoding.
func (p *part) plain() bool {
	return p.name == "" && !p.label && p.typ.Class != meta.Vlen && p.typ.Class != meta.String
}

// whole returns a dataset of numbers as one column.
func (f *File) whole(d *meta.Dataset, r array.Records, field source.Field) array.Column {
	c := array.Column{Field: field, Count: d.Records()}
	attributes(&c.Field, d)
	if names := d.Dimensions(); len(names) == len(c.Field.Shape)+1 {
		c.Field.Dims = names
	}
	layout := array.Fixed{Size: r.RecordBytes()}
	c.Open = func() (array.Cursor, error) {
		return layout.Cursor(NewStream(f.ctx, r, rowsPerRead(d), 0), c.Count), nil
	}
	c.At = func(i int64, buf []byte) ([]byte, error) {
		n := len(buf)
		buf = append(buf, make([]byte, layout.Size)...)
		return buf, r.Records(f.ctx, buf[n:], i, i+1)
	}
	c.Rows = func(a, b int64, dst []byte) error { return r.Records(f.ctx, dst, a, b) }
	return c
}

// attributes takes over the attributes that penstock and other programs write: the layout of images and the names of
// classes.
func attributes(f *source.Field, d *meta.Dataset) {
	if a, ok := d.Attrs.Get("layout"); ok {
		if text, ok := a.Value.Text(); ok && len(f.Shape) == 3 && (text == "NCHW" || text == "NHWC") {
			f.Layout = text[1:]
		}
	}
	if a, ok := d.Attrs.Get("class_names"); ok && len(f.Shape) == 0 {
		if names, ok := a.Value.Strings(); ok && f.DType == tensor.Int64 {
			f.Classes = names
		}
	}
}

// rowsPerRead returns how many records are in one row of chunks; 1 for a dataset without chunks. Reading fewer would
// decompress each chunk several times.
func rowsPerRead(d *meta.Dataset) int64 {
	if len(d.Layout.ChunkDims) > 0 {
		return max(1, d.Layout.ChunkDims[0])
	}
	return 1
}

// blockRecords returns how many records are read at once for columns that are parts of records: about 256 KiB, in whole
// rows of chunks unless such a row is larger than 32 MiB.
func blockRecords(d *meta.Dataset, size int) int64 {
	n := max(1, (256<<10)/int64(size))
	if row := rowsPerRead(d); row > 1 && row*int64(size) <= 32<<20 {
		return max(n/row, 1) * row
	}
	return n
}

// blocks reads records in blocks, and keeps the last block. The columns of a compound share it: they are read
// record by record, one column after the other, and without the kept block each column would read and decompress
// the same chunks again.
type blocks struct {
	ctx  context.Context
	r    array.Records
	step int64 // records in a block

	mu    sync.Mutex
	first int64
	bytes []byte // the last block; never modified, as cursors keep parts of it
}

// get returns the block of records that record i is in, and the number of its first record.
func (b *blocks) get(i int64) (records []byte, first int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first = i / b.step * b.step
	if b.bytes != nil && b.first == first {
		return b.bytes, first, nil
	}
	end := min(first+b.step, b.r.Len())
	records = make([]byte, (end-first)*int64(b.r.RecordBytes()))
	if err := b.r.Records(b.ctx, records, first, end); err != nil {
		return nil, 0, err
	}
	b.bytes, b.first = records, first
	return records, first, nil
}

// partColumn is the column of one part of a dataset's records.
type partColumn struct {
	part
	blocks *blocks
	heap   *meta.Heap
	native bool
}

func (c *partColumn) column(count int64) array.Column {
	return array.Column{
		Field: c.field, Count: count,
		Open: func() (array.Cursor, error) { return &partCursor{c: c, count: count}, nil },
		At: func(i int64, buf []byte) ([]byte, error) {
			record := make([]byte, c.blocks.r.RecordBytes())
			if err := c.blocks.r.Records(c.blocks.ctx, record, i, i+1); err != nil {
				return buf, err
			}
			return c.value(buf, record, c.native, c.heap)
		},
	}
}

// partCursor returns the values of a partColumn in order.
type partCursor struct {
	c         *partColumn
	at, count int64
	block     []byte // the records of the current block, from at on
	end       int64  // the record after the block
}

// Next returns the next value. When the block is exhausted, it reads the next block.
func (p *partCursor) Next() ([]byte, error) {
	if p.at == p.count {
		return nil, io.EOF
	}
	size := p.c.blocks.r.RecordBytes()
	if p.at >= p.end {
		b, first, err := p.c.blocks.get(p.at)
		if err != nil {
			return nil, err
		}
		p.block, p.end = b[(p.at-first)*int64(size):], first+int64(len(b)/size)
	}
	record := p.block[:size]
	p.block = p.block[size:]
	p.at++
	return p.c.value(nil, record, p.c.native, p.c.heap)
}

func (p *partCursor) Close() error { return nil }
