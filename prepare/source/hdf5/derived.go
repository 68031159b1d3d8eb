package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/tensor"
)

// derivedColumns are the columns that several datasets of a group make together.
type derivedColumns struct {
	path    string
	columns []array.Column
}

// Encoding says what the datasets of a group are together, as AnnData notes: "categorical", "csr_matrix" and others; ""
// for other groups.
func Encoding(attrs meta.Attrs) string {
	if a, ok := attrs.Get("encoding-type"); ok {
		text, _ := a.Value.Text()
		return text
	}
	if a, ok := attrs.Get("h5sparse_format"); ok { // AnnData before 0.7
		text, _ := a.Value.Text()
		return text + "_matrix"
	}
	return ""
}

// derived returns the columns of groups that AnnData writes. Others are left out.
func (f *File) derived() (list []derivedColumns) {
	for l := range f.meta.Walk() {
		if l.Err != nil || l.Loop || l.Group == nil {
			continue
		}
		var columns []array.Column
		var err error
		switch Encoding(l.Group.Attrs) {
		case "categorical":
			columns, err = f.categorical(l.Path)
		case "csr_matrix":
			columns, err = f.sparse(l.Path)
		}
		if err == nil && columns != nil {
			list = append(list, derivedColumns{trim(l.Path), columns})
		}
	}
	return list
}

// one returns a dataset of numbers as a column.
func (f *File) one(path string) (d *meta.Dataset, c array.Column, err error) {
	if d, err = f.meta.Dataset(path); err != nil {
		return nil, c, err
	}
	list, err := f.columns(d, false)
	if err == nil && (len(list) != 1 || len(d.Dims) != 1) {
		err = fmt.Errorf("%s is not one axis of values: %w", path, meta.ErrUnsupported)
	}
	if err != nil {
		return nil, c, err
	}
	return d, list[0], nil
}

// mostCategories is how many names labels can have.
const mostCategories = 1 << 16

// categorical returns the labels of a group: codes, and categories that they count.
func (f *File) categorical(path string) ([]array.Column, error) {
	d, codes, err := f.one(path + "/codes")
	if err != nil {
		return nil, err
	}
	names, err := f.texts(path + "/categories")
	if err != nil {
		return nil, err
	}
	size, signed := codes.Field.DType.Size(), d.Type.Signed
	label := func(buf, code []byte) ([]byte, error) {
		var word [8]byte
		copy(word[:], code)
		x := int64(binary.LittleEndian.Uint64(word[:]))
		if shift := 64 - 8*size; signed {
			x = x << shift >> shift
		}
		if x < 0 || x >= int64(len(names)) {
			return buf, errors.New("a value that is missing; fill it first: s.cat.add_categories('missing').fillna('missing')")
		}
		return binary.LittleEndian.AppendUint64(buf, uint64(x)), nil
	}
	c := array.Column{Field: source.LabelField(layout.FieldName(trim(path)), names), Count: codes.Count}
	c.Field.Origin = trim(path)
	c.Open = func() (array.Cursor, error) {
		cursor, err := codes.Open()
		return &mapped{cursor, label}, err
	}
	c.At = func(i int64, buf []byte) ([]byte, error) {
		code, err := codes.At(i, nil)
		if err != nil {
			return buf, err
		}
		return label(buf, code)
	}
	return []array.Column{c}, nil
}

// mapped is a cursor whose values are computed from another's.
type mapped struct {
	array.Cursor
	f func(buf, value []byte) ([]byte, error)
}

func (m *mapped) Next() ([]byte, error) {
	b, err := m.Cursor.Next()
	if err != nil {
		return nil, err
	}
	return m.f(nil, b)
}

// texts returns all elements of a dataset, as strings.
func (f *File) texts(path string) (list []string, err error) {
	_, c, err := f.one(path)
	if err != nil {
		return nil, err
	}
	if c.Count > mostCategories {
		return nil, fmt.Errorf("%d categories: %w", c.Count, meta.ErrUnsupported)
	}
	cursor, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for range c.Count {
		b, err := cursor.Next()
		if err != nil {
			return nil, err
		}
		if !c.Field.IsBytes() {
			b = []byte(c.Field.DType.Text(b))
		}
		list = append(list, string(b))
	}
	return list, nil
}

// sparse returns the rows of a matrix that is compressed by rows: for each the values that are not zero, and their
// columns.
func (f *File) sparse(path string) (list []array.Column, err error) {
	_, ends, err := f.one(path + "/indptr")
	if err != nil {
		return nil, err
	}
	if t := ends.Field.DType; t != tensor.Int32 && t != tensor.Int64 || ends.Count < 1 {
		return nil, fmt.Errorf("%s/indptr is %v: %w", path, t, meta.ErrUnsupported)
	}
	for _, part := range []string{"data", "indices"} {
		_, values, err := f.one(path + "/" + part)
		if err != nil || values.Field.Ragged {
			return nil, errors.Join(err, meta.ErrUnsupported)
		}
		s := &sparse{ends: ends, values: values, wide: ends.Field.DType == tensor.Int64, size: values.Field.DType.Size()}
		c := array.Column{
			Field: source.RaggedField(layout.FieldName(trim(path)+"_"+part), values.Field.DType),
			Count: ends.Count - 1, Open: s.cursor,
		}
		c.Field.Origin = trim(path) + "." + part
		list = append(list, c)
	}
	return list, nil
}

// sparse is one of the two arrays of a matrix.
type sparse struct {
	ends, values array.Column
	wide         bool // ends are int64
	size         int
}

func (s *sparse) cursor() (array.Cursor, error) {
	ends, err := s.ends.Open()
	if err != nil {
		return nil, err
	}
	values, err := s.values.Open()
	if err != nil {
		return nil, errors.Join(err, ends.Close())
	}
	c := &sparseCursor{sparse: s, offsets: ends, numbers: values}
	if first, err := c.end(); err != nil || first != 0 {
		return nil, errors.Join(err, fmt.Errorf("rows begin at %d, not at 0: %w", first, meta.ErrCorrupt), c.Close())
	}
	return c, nil
}

// sparseCursor gives one row after the other.
type sparseCursor struct {
	*sparse
	offsets, numbers array.Cursor
	at               int64
}

func (c *sparseCursor) end() (int64, error) {
	b, err := c.offsets.Next()
	if err != nil {
		return 0, err
	}
	if c.wide {
		return int64(binary.LittleEndian.Uint64(b)), nil
	}
	return int64(int32(binary.LittleEndian.Uint32(b))), nil
}

func (c *sparseCursor) Next() ([]byte, error) {
	end, err := c.end()
	if err != nil {
		return nil, err
	}
	n := end - c.at
	if n < 0 || end > c.values.Count || n > source.MaxValue/int64(c.size) {
		return nil, fmt.Errorf("a row from value %d to %d of %d: %w", c.at, end, c.values.Count, meta.ErrCorrupt)
	}
	row := make([]byte, 0, n*int64(c.size))
	for range n {
		b, err := c.numbers.Next()
		if err != nil {
			return nil, err
		}
		row = append(row, b...)
	}
	c.at = end
	return row, nil
}

func (c *sparseCursor) Close() error { return errors.Join(c.offsets.Close(), c.numbers.Close()) }
