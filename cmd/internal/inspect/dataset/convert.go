package dataset

import (
	"github.com/penstock/penstock/tensor"
)

// Floats returns the elements of v as float64. Integers beyond 2^53 are rounded.
func Floats(v tensor.View) []float64 {
	return tensor.AppendFloats[float64](nil, v.DType(), v.Bytes())
}

// Map returns the results of f for each element.
func Map[T, U any](in []T, f func(T) U) []U {
	out := make([]U, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}
