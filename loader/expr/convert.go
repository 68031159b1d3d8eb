package expr

import "github.com/penstock/penstock/tensor"

// choice is the elements of a record, or of one row of a ragged record, that an expression uses.
type choice struct {
	dtype  tensor.DType
	size   int   // elements of a record or row
	chosen []int // which of them; nil means all
}

// count returns how many elements of a record or row are chosen.
func (e *choice) count() int {
	if e.chosen == nil {
		return e.size
	}
	return len(e.chosen)
}

// convert returns the chosen elements of n rows, or of the listed rows, in the kind of their type.
// Row -1 does not exist, and has zeros.
func (e *choice) convert(b *block, v tensor.View, n int, rows []int64) (c column) {
	total := n * e.count()
	switch e.dtype {
	case tensor.Bool:
		c.truths = taken(e, b.truths.take(total), v.Bytes(), n, rows, func(x byte) bool { return x != 0 })
	case tensor.Int64:
		c.integers = e.same(b, tensor.As[int64](v), total, n, rows)
	case tensor.Uint64:
		c.integers = taken(e, b.integers.take(total), tensor.As[uint64](v), n, rows,
			func(x uint64) int64 { return int64(x) })
	case tensor.Int8:
		c.integers = taken(e, b.integers.take(total), tensor.As[int8](v), n, rows, widen[int8])
	case tensor.Int16:
		c.integers = taken(e, b.integers.take(total), tensor.As[int16](v), n, rows, widen[int16])
	case tensor.Int32:
		c.integers = taken(e, b.integers.take(total), tensor.As[int32](v), n, rows, widen[int32])
	case tensor.Uint8:
		c.integers = taken(e, b.integers.take(total), tensor.As[uint8](v), n, rows, widen[uint8])
	case tensor.Uint16:
		c.integers = taken(e, b.integers.take(total), tensor.As[uint16](v), n, rows, widen[uint16])
	case tensor.Uint32:
		c.integers = taken(e, b.integers.take(total), tensor.As[uint32](v), n, rows, widen[uint32])
	case tensor.Float16:
		c.floats = taken(e, b.floats.take(total), tensor.As[tensor.Half](v), n, rows,
			func(x tensor.Half) float64 { return float64(x.Float32()) })
	case tensor.BFloat16:
		c.floats = taken(e, b.floats.take(total), tensor.As[tensor.Brain](v), n, rows,
			func(x tensor.Brain) float64 { return float64(x.Float32()) })
	case tensor.Float32:
		c.floats = taken(e, b.floats.take(total), tensor.As[float32](v), n, rows,
			func(x float32) float64 { return float64(x) })
	case tensor.Float64:
		c.floats = taken(e, b.floats.take(total), tensor.As[float64](v), n, rows, func(x float64) float64 { return x })
	}
	return c
}

func widen[S int8 | int16 | int32 | uint8 | uint16 | uint32](x S) int64 { return int64(x) }

// same returns int64 values without a copy if all of them are wanted.
func (e *choice) same(b *block, values []int64, total, n int, rows []int64) []int64 {
	if e.chosen == nil && rows == nil {
		return values
	}
	return taken(e, b.integers.take(total), values, n, rows, func(x int64) int64 { return x })
}

// taken converts the chosen elements of rows.
func taken[D, S any](e *choice, dst []D, values []S, n int, rows []int64, to func(S) D) []D {
	if e.chosen == nil && rows == nil {
		for i, x := range values {
			dst[i] = to(x)
		}
		return dst
	}
	if len(e.chosen) == 1 && rows == nil { // one element of each row
		at := e.chosen[0]
		for i := range n {
			dst[i] = to(values[i*e.size+at])
		}
		return dst
	}
	k := 0
	for i := range n {
		row := int64(i)
		if rows != nil {
			row = rows[i]
		}
		for j := range e.count() {
			at := j
			if e.chosen != nil {
				at = e.chosen[j]
			}
			if row >= 0 {
				dst[k] = to(values[int(row)*e.size+at])
			} else {
				var zero D
				dst[k] = zero
			}
			k++
		}
	}
	return dst
}
