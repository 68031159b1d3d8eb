package cells

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/tensor"
)

// sparse reads the rows of a CSR matrix: the values of all rows, their column numbers, and the end of each row.
type sparse struct {
	ctx     context.Context
	values  array.Records // of type dtype
	columns array.Records // of int32, or of int64 if wide
	wide    bool
	dtype   tensor.DType
	ends    []int64 // indptr: row i has the values [ends[i], ends[i+1])
	width   int
	scratch sync.Pool // of *[]byte, for columns and values before they are interleaved
}

// sparseTypes has the element type of a sparse field by the type of the stored values. A field has pairs of a
// column number and a value in one type, so it is the smallest type that holds both the values and the numbers of
// 2^24 columns.
var sparseTypes = map[tensor.DType]tensor.DType{
	tensor.Float16: tensor.Float32, tensor.Float32: tensor.Float32, tensor.Float64: tensor.Float64,
	tensor.Bool: tensor.Int32, tensor.Uint8: tensor.Int32, tensor.Int8: tensor.Int32, tensor.Uint16: tensor.Int32,
	tensor.Int16: tensor.Int32, tensor.Int32: tensor.Int32, tensor.Uint32: tensor.Uint32,
	tensor.Uint64: tensor.Uint64, tensor.Int64: tensor.Int64,
}

// sparseField returns the field of the rows of a matrix. float32 holds integers only up to 2^24, so a wider matrix
// needs float64.
func sparseField(path string, values tensor.DType, width int) (source.Field, error) {
	dtype := sparseTypes[values]
	if dtype == tensor.Float32 && width > 1<<24 {
		dtype = tensor.Float64
	}
	f := source.RaggedField(layout.FieldName(path), dtype, 2)
	f.Origin, f.Content, f.Width = path, tensor.Sparse, width
	return f, f.Validate()
}

// openSparse opens the matrix in the arrays data, indices and indptr of a group. Values and columns of smaller
// types are converted while they are read.
func openSparse(h Hierarchy, path string, width int) (c array.Column, err error) {
	s := &sparse{ctx: h.Context(), width: width}
	var valued, placed tensor.DType
	if s.values, valued, err = h.Numbers(path + "/data"); err != nil {
		return c, err
	}
	if s.columns, placed, err = h.Numbers(path + "/indices"); err != nil {
		return c, err
	}
	if c.Field, err = sparseField(path, valued, width); err != nil {
		return c, err
	}
	if s.dtype = c.Field.DType; s.dtype != valued {
		s.values = &array.Converted{Narrow: s.values, From: valued, To: s.dtype}
	}
	// scipy writes int32 indices, and int64 when a matrix has too many values; other types are converted to int64.
	if s.wide = placed != tensor.Int32; s.wide && placed != tensor.Int64 {
		s.columns = &array.Converted{Narrow: s.columns, From: placed, To: tensor.Int64}
	}
	if s.columns.Len() != s.values.Len() {
		return c, fmt.Errorf("%s: %d columns of %d values: %w", path, s.columns.Len(), s.values.Len(), meta.ErrCorrupt)
	}
	if s.ends, err = rowEnds(h, path+"/indptr", s.values.Len()); err != nil {
		return c, err
	}
	c.Count, c.At = int64(len(s.ends)-1), s.at
	c.Open = func() (array.Cursor, error) { return array.CursorAt(c.At, c.Count), nil }
	return c, nil
}

// rowEnds reads indptr of a matrix with so many values, and checks that it begins at 0, never decreases and stays
// in the values, so that later reads need no check.
func rowEnds(h Hierarchy, path string, values int64) ([]int64, error) {
	r, dtype, err := h.Numbers(path)
	if err != nil {
		return nil, err
	}
	if dtype.IsFloat() || r.Len() < 1 {
		return nil, fmt.Errorf("%s is %d numbers of type %v: %w", path, r.Len(), dtype, meta.ErrUnsupported)
	}
	if err := h.Check(path); err != nil {
		return nil, err
	}
	stored := make([]byte, r.Len()*int64(dtype.Size()))
	if err := r.Records(h.Context(), stored, 0, r.Len()); err != nil {
		return nil, err
	}
	ends, last := make([]int64, r.Len()), int64(0)
	for i := range ends {
		x, ok := dtype.Read(stored[i*dtype.Size():]).Int64()
		if !ok || x < last || x > values || i == 0 && x != 0 {
			return nil, fmt.Errorf("%s: row %d ends at value %d of %d: %w", path, i, x, values, meta.ErrCorrupt)
		}
		ends[i], last = x, x
	}
	return ends, nil
}

// at appends row i to buf as pairs of column and value. buf has whole elements of the field's type, so the pairs
// are aligned.
func (s *sparse) at(i int64, buf []byte) ([]byte, error) {
	a, b := s.ends[i], s.ends[i+1]
	n, from := int(b-a), len(buf)
	if int64(n) > source.MaxValue/int64(2*s.dtype.Size()) {
		return buf, fmt.Errorf("a row of %d values: %w", n, meta.ErrUnsupported)
	}
	buf = slices.Grow(buf, 2*n*s.dtype.Size())[:from+2*n*s.dtype.Size()]
	if err := s.read(buf[from:], a, b); err != nil {
		return buf[:from], err
	}
	return buf, nil
}

// read fills dst with the pairs of the values [a, b).
func (s *sparse) read(dst []byte, a, b int64) error {
	held, _ := s.scratch.Get().(*[]byte)
	if held == nil {
		held = new([]byte)
	}
	// The pool holds pointers, as putting a slice in it would allocate for its header.
	defer s.scratch.Put(held)
	columns := int(b-a) * s.columns.RecordBytes()
	values := (columns + 7) / 8 * 8 // so that they are aligned
	end := values + int(b-a)*s.dtype.Size()
	if cap(*held) < end {
		*held = make([]byte, end)
	}
	stored := (*held)[:end]
	if err := s.columns.Records(s.ctx, stored[:columns], a, b); err != nil {
		return err
	}
	if err := s.values.Records(s.ctx, stored[values:], a, b); err != nil {
		return err
	}
	return pairing[s.dtype](dst, stored[:columns], stored[values:], s.wide, s.width)
}

// pairing has, by element type, the function that fills dst with alternating columns and values.
var pairing = map[tensor.DType]func(dst, columns, values []byte, wide bool, width int) error{
	tensor.Float32: pairs[float32], tensor.Float64: pairs[float64], tensor.Int32: pairs[int32],
	tensor.Uint32: pairs[uint32], tensor.Int64: pairs[int64], tensor.Uint64: pairs[uint64],
}

type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

func pairs[T number](dst, columns, values []byte, wide bool, width int) error {
	if wide {
		return interleave(tensor.Elements[T](dst), tensor.Elements[int64](columns), tensor.Elements[T](values), width)
	}
	return interleave(tensor.Elements[T](dst), tensor.Elements[int32](columns), tensor.Elements[T](values), width)
}

func interleave[T number, I int32 | int64](dst []T, columns []I, values []T,
	width int) error {
	dst, values = dst[:2*len(columns)], values[:len(columns)]
	for i, c := range columns {
		if uint64(c) >= uint64(width) {
			return fmt.Errorf("column %d of %d: %w", c, width, meta.ErrCorrupt)
		}
		dst[2*i], dst[2*i+1] = T(c), values[i]
	}
	return nil
}
