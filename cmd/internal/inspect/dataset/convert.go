package dataset

import (
	"github.com/penstock/penstock/tensor"
)

// Floats returns the elements of v as float64.
func Floats(v tensor.View) []float64 {
	switch v.DType() {
	case tensor.Bool, tensor.Uint8:
		return Map(v.Bytes(), func(x uint8) float64 { return float64(x) })
	case tensor.Float16:
		return Map(tensor.As[tensor.Half](v), func(x tensor.Half) float64 { return float64(x.Float32()) })
	case tensor.BFloat16:
		return Map(tensor.As[tensor.Brain](v), func(x tensor.Brain) float64 { return float64(x.Float32()) })
	case tensor.Float32:
		return Map(tensor.As[float32](v), func(x float32) float64 { return float64(x) })
	case tensor.Float64:
		return Map(tensor.As[float64](v), func(x float64) float64 { return x })
	}
	return Map(AppendInts(nil, v), func(x int64) float64 { return float64(x) })
}

// AppendInts appends the elements of v, which are whole numbers. Those above the range of
// int64 wrap around.
func AppendInts(dst []int64, v tensor.View) []int64 {
	switch v.DType() {
	case tensor.Bool, tensor.Uint8:
		return append(dst, Map(v.Bytes(), func(x uint8) int64 { return int64(x) })...)
	case tensor.Int8:
		return append(dst, Map(tensor.As[int8](v), func(x int8) int64 { return int64(x) })...)
	case tensor.Uint16:
		return append(dst, Map(tensor.As[uint16](v), func(x uint16) int64 { return int64(x) })...)
	case tensor.Int16:
		return append(dst, Map(tensor.As[int16](v), func(x int16) int64 { return int64(x) })...)
	case tensor.Uint32:
		return append(dst, Map(tensor.As[uint32](v), func(x uint32) int64 { return int64(x) })...)
	case tensor.Int32:
		return append(dst, Map(tensor.As[int32](v), func(x int32) int64 { return int64(x) })...)
	case tensor.Uint64:
		return append(dst, Map(tensor.As[uint64](v), func(x uint64) int64 { return int64(x) })...)
	case tensor.Int64:
		return append(dst, tensor.As[int64](v)...)
	}
	panic("inspect: not whole numbers")
}

// Map returns f of each element.
func Map[T, U any](in []T, f func(T) U) []U {
	out := make([]U, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}
