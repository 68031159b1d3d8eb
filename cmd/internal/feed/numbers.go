package feed

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/tensor"
)

// numbersOf returns the records of a field of labels, as float64: integers beyond 2^53, which no label
// is, are rounded.
func numbersOf(v tensor.View) (func(i int) float64, error) {
	switch v.DType() {
	case tensor.Uint8:
		return convert[uint8](v), nil
	case tensor.Int8:
		return convert[int8](v), nil
	case tensor.Uint16:
		return convert[uint16](v), nil
	case tensor.Int16:
		return convert[int16](v), nil
	case tensor.Uint32:
		return convert[uint32](v), nil
	case tensor.Int32:
		return convert[int32](v), nil
	case tensor.Uint64:
		return convert[uint64](v), nil
	case tensor.Int64:
		return convert[int64](v), nil
	case tensor.Float32:
		return convert[float32](v), nil
	case tensor.Float64:
		return convert[float64](v), nil
	case tensor.Bool:
		b := v.Bytes()
		return func(i int) float64 { return math.Min(1, float64(b[i])) }, nil
	}
	return nil, fmt.Errorf("its numbers are %v, which labels cannot be", v.DType())
}

func convert[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64](
	v tensor.View) func(i int) float64 {
	values := tensor.As[T](v)
	return func(i int) float64 { return float64(values[i]) }
}
