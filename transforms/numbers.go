package transforms

import (
	"encoding/binary"
	"math"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// load reads numbers of type dt; the usual types have kernels.
func load(x []float64, b []byte, dt tensor.DType) {
	switch dt {
	case tensor.Uint8:
		kernel.FromBytes(x, b)
	case tensor.Float32:
		kernel.FromF32(x, b)
	default:
		for i := range x {
			x[i] = number(b[i*dt.Size():], dt)
		}
	}
}

// number reads one number.
func number(b []byte, dt tensor.DType) float64 {
	le := binary.LittleEndian
	switch dt {
	case tensor.Int8:
		return float64(int8(b[0]))
	case tensor.Uint16:
		return float64(le.Uint16(b))
	case tensor.Int16:
		return float64(int16(le.Uint16(b)))
	case tensor.Uint32:
		return float64(le.Uint32(b))
	case tensor.Int32:
		return float64(int32(le.Uint32(b)))
	case tensor.Uint64:
		return float64(le.Uint64(b))
	case tensor.Int64:
		return float64(int64(le.Uint64(b)))
	case tensor.Float16:
		return float64(tensor.Half(le.Uint16(b)).Float32())
	case tensor.BFloat16:
		return float64(tensor.Brain(le.Uint16(b)).Float32())
	case tensor.Float32:
		return float64(math.Float32frombits(le.Uint32(b)))
	case tensor.Float64:
		return math.Float64frombits(le.Uint64(b))
	}
	return float64(b[0]) // Uint8, Bool
}

// save writes numbers as type dt.
func save(b []byte, x []float64, dt tensor.DType) {
	if dt == tensor.Float32 {
		kernel.ToF32(b, x)
		return
	}
	for i, v := range x {
		putNumber(b[i*dt.Size():], round(v, dt), dt)
	}
}

// putNumber writes one value of type dt.
func putNumber(b []byte, v float64, dt tensor.DType) {
	le := binary.LittleEndian
	switch dt {
	case tensor.Uint8, tensor.Bool:
		b[0] = byte(v)
	case tensor.Int8:
		b[0] = byte(int8(v))
	case tensor.Uint16:
		le.PutUint16(b, uint16(v))
	case tensor.Int16:
		le.PutUint16(b, uint16(int16(v)))
	case tensor.Uint32:
		le.PutUint32(b, uint32(v))
	case tensor.Int32:
		le.PutUint32(b, uint32(int32(v)))
	case tensor.Uint64:
		le.PutUint64(b, saturateUint64(v))
	case tensor.Int64:
		le.PutUint64(b, uint64(saturateInt64(v)))
	case tensor.Float16:
		le.PutUint16(b, uint16(tensor.HalfOf(float32(v))))
	case tensor.BFloat16:
		le.PutUint16(b, uint16(tensor.BrainOf(float32(v))))
	case tensor.Float64:
		le.PutUint64(b, math.Float64bits(v))
	}
}

// saturateInt64 converts; the largest float64 below 2^63 is far from it, so that 2^63 itself
// stands for the limit.
func saturateInt64(v float64) int64 {
	if v >= 1<<63 {
		return math.MaxInt64
	}
	return int64(v)
}

func saturateUint64(v float64) uint64 {
	if v >= 1<<64 {
		return math.MaxUint64
	}
	return uint64(v)
}

// roundAll makes all of x values of dt.
func roundAll(x []float64, dt tensor.DType) {
	switch dt {
	case tensor.Float64:
	case tensor.Float32:
		kernel.RoundF32(x)
	default:
		for i, v := range x {
			x[i] = round(v, dt)
		}
	}
}

// round makes v a value of dt: integers lose the fraction and stop at their limits, NaN
// becomes 0 there; Bool is 0 or 1; floats are rounded to nearest even.
func round(v float64, dt tensor.DType) float64 {
	switch dt {
	case tensor.Float64:
		return v
	case tensor.Float32:
		return float64(float32(v))
	case tensor.Float16:
		return float64(tensor.HalfOf(float32(v)).Float32())
	case tensor.BFloat16:
		return float64(tensor.BrainOf(float32(v)).Float32())
	case tensor.Bool:
		if v != 0 {
			return 1
		}
		return 0
	}
	if math.IsNaN(v) {
		return 0
	}
	lo, hi := limits(dt)
	return min(max(math.Trunc(v), lo), hi)
}

// limits returns the range of an integer type; for 64 bits, the power of 2 above it.
func limits(dt tensor.DType) (lo, hi float64) {
	bits := 8 * dt.Size()
	switch dt {
	case tensor.Int64:
		return -1 << 63, 1 << 63
	case tensor.Uint64:
		return 0, 1 << 64
	case tensor.Int8, tensor.Int16, tensor.Int32:
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
	}
	return 0, math.Ldexp(1, bits) - 1
}
