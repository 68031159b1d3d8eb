// Package padding fills up records with a value.
package padding

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock/penstock/tensor"
)

// Element returns the bytes of v as an element of a type. It is an error if v is not exact there.
func Element(dt tensor.DType, v float64) ([]byte, error) {
	var bits uint64
	var back float64
	switch dt {
	case tensor.Float64:
		bits, back = math.Float64bits(v), v
	case tensor.Float32:
		bits, back = uint64(math.Float32bits(float32(v))), float64(float32(v))
	case tensor.Float16:
		h := tensor.HalfOf(float32(v))
		bits, back = uint64(h), float64(h.Float32())
	case tensor.BFloat16:
		h := tensor.BrainOf(float32(v))
		bits, back = uint64(h), float64(h.Float32())
	default:
		bits, back = integer(dt, v)
	}
	if back != v && !(v != v && dt.IsFloat()) {
		return nil, fmt.Errorf("Pad with %v, which is no %v", v, dt)
	}
	return binary.LittleEndian.AppendUint64(nil, bits)[:dt.Size():dt.Size()], nil
}

// integer returns v as an integer of a type, and what that stands for.
func integer(dt tensor.DType, v float64) (bits uint64, back float64) {
	if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return 0, math.NaN()
	}
	bits = uint64(int64(v))
	shift := 64 - 8*dt.Size()
	switch dt {
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		return bits, float64(int64(bits) << shift >> shift)
	case tensor.Bool:
		return bits, float64(bits & 1)
	}
	return bits, float64(bits << shift >> shift)
}

// Fill repeats value over dst.
func Fill(dst, value []byte) {
	for n := copy(dst, value); n > 0 && n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
