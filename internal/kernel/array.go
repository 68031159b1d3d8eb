package kernel

import (
	"encoding/binary"
	"math"
)

// Standardize is x[i] = (x[i] - mean) / std.
func Standardize(x []float64, mean, std float64) {
	for i := standardizeFast(x, mean, std); i < len(x); i++ {
		x[i] = (x[i] - mean) / std
	}
}

// Scale is x[i] = x[i]*factor + offset, rounded after the product and after the
// sum.
func Scale(x []float64, factor, offset float64) {
	for i := scaleFast(x, factor, offset); i < len(x); i++ {
		x[i] = float64(x[i]*factor) + offset
	}
}

// Clip replaces what is below lo by lo, then what is above hi by hi. NaN stays.
func Clip(x []float64, lo, hi float64) {
	for i := clipFast(x, lo, hi); i < len(x); i++ {
		if x[i] < lo {
			x[i] = lo
		}
		if x[i] > hi {
			x[i] = hi
		}
	}
}

// FromBytes is dst[i] = src[i]; src is at least as long as dst.
func FromBytes(dst []float64, src []byte) {
	src = src[:len(dst)]
	for i := fromBytesFast(dst, src); i < len(dst); i++ {
		dst[i] = float64(src[i])
	}
}

// FromF32 reads as many little-endian float32 from src as dst holds.
func FromF32(dst []float64, src []byte) {
	src = src[:4*len(dst)]
	for i := fromF32Fast(dst, src); i < len(dst); i++ {
		dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

// ToF32 writes src as little-endian float32, rounded to nearest even.
func ToF32(dst []byte, src []float64) {
	dst = dst[:4*len(src)]
	for i := toF32Fast(dst, src); i < len(src); i++ {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(float32(src[i])))
	}
}

// RoundF32 makes the numbers values of float32.
func RoundF32(x []float64) {
	for i := roundF32Fast(x); i < len(x); i++ {
		x[i] = float64(float32(x[i]))
	}
}
