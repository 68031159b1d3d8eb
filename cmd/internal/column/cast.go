package column

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock/penstock/tensor"
)

// castable reports whether numbers of a type can become those of another one, about as by "same_kind" of NumPy: an
// integer stays one or becomes a float, and a float stays one.
func castable(from, to tensor.DType) bool {
	wide := func(d tensor.DType) bool { return d == tensor.Float32 || d == tensor.Float64 }
	integer := func(d tensor.DType) bool { return d != tensor.Bool && !d.IsFloat() }
	switch {
	case integer(from):
		return integer(to) || wide(to)
	case wide(from):
		return wide(to)
	}
	return false
}

// cast returns numbers of a type as those of another one, for which castable holds. The error names the first one that
// does not fit.
func cast(value []byte, from, to tensor.DType) (out []byte, err error) {
	for ; len(value) > 0; value = value[from.Size():] {
		if from.IsFloat() {
			out, err = appendFloat(out, floatOf(value, from), to)
		} else {
			out, err = castInteger(out, value[:from.Size()], from, to)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func floatOf(b []byte, d tensor.DType) float64 {
	if d == tensor.Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func appendFloat(out []byte, x float64, d tensor.DType) ([]byte, error) {
	if d == tensor.Float64 {
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(x)), nil
	}
	if math.IsInf(float64(float32(x)), 0) && !math.IsInf(x, 0) {
		return nil, fmt.Errorf("%v is not a number that %v holds", x, d)
	}
	return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x))), nil
}

func castInteger(out, b []byte, from, to tensor.DType) ([]byte, error) {
	var word [8]byte
	copy(word[:], b)
	n, signed := int64(binary.LittleEndian.Uint64(word[:])), false
	switch from {
	case tensor.Int8:
		n, signed = int64(int8(n)), true
	case tensor.Int16:
		n, signed = int64(int16(n)), true
	case tensor.Int32:
		n, signed = int64(int32(n)), true
	case tensor.Int64:
		signed = true
	}
	large := !signed && n < 0 // of uint64
	switch {
	case to.IsFloat() && large:
		return appendFloat(out, float64(uint64(n)), to)
	case to.IsFloat():
		return appendFloat(out, float64(n), to)
	case large && to != tensor.Uint64:
		return nil, fmt.Errorf("%d is not a number that %v holds", uint64(n), to)
	case large:
		return appendNumber(out, to, uint64(n)), nil
	}
	if err := fits(to, n); err != nil {
		return nil, err
	}
	return appendNumber(out, to, uint64(n)), nil
}

// fits reports whether an integer is one of a type.
func fits(d tensor.DType, n int64) error {
	bits := 8 * d.Size()
	low, high := int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits)
	switch d {
	case tensor.Bool:
		low, high = 0, 1
	case tensor.Uint8, tensor.Uint16, tensor.Uint32:
		low, high = 0, 1<<bits-1
	case tensor.Uint64:
		low = 0
	}
	if n < low || n > high {
		return fmt.Errorf("%d is not a number that %v holds", n, d)
	}
	return nil
}
