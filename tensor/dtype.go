package tensor

import (
	"fmt"
	"math"
)

// DType is the type of one element, by its NumPy name. The zero value is Invalid.
type DType uint8

// The element types that penstock stores. BFloat16 has no NumPy type of its own: it is
// stored as uint16 bits, and the schema says what they mean.
const (
	Invalid DType = iota
	Bool
	Uint8
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Uint64
	Int64
	Float16
	BFloat16
	Float32
	Float64
)

type dtypeInfo struct {
	name     string
	size     int
	descr    string // NumPy array-protocol type string, little endian
	digits   int    // binary digits of a number, without its sign
	signed   bool
	exponent int // largest one of a float; 0 for other types
}

var dtypes = [...]dtypeInfo{
	Invalid:  {"invalid", 0, "", 0, false, 0},
	Bool:     {"bool", 1, "|b1", 1, false, 0},
	Uint8:    {"uint8", 1, "|u1", 8, false, 0},
	Int8:     {"int8", 1, "|i1", 7, true, 0},
	Uint16:   {"uint16", 2, "<u2", 16, false, 0},
	Int16:    {"int16", 2, "<i2", 15, true, 0},
	Uint32:   {"uint32", 4, "<u4", 32, false, 0},
	Int32:    {"int32", 4, "<i4", 31, true, 0},
	Uint64:   {"uint64", 8, "<u8", 64, false, 0},
	Int64:    {"int64", 8, "<i8", 63, true, 0},
	Float16:  {"float16", 2, "<f2", 11, true, 15},
	BFloat16: {"bfloat16", 2, "<u2", 8, true, 127},
	Float32:  {"float32", 4, "<f4", 24, true, 127},
	Float64:  {"float64", 8, "<f8", 53, true, 1023},
}

// ParseDType returns the type of that name ("uint8", "float32", "bfloat16", ...).
func ParseDType(name string) (DType, error) {
	for d := Bool; int(d) < len(dtypes); d++ {
		if dtypes[d].name == name {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("unknown dtype %q; known are bool, int8 to int64, uint8 to uint64, float16, bfloat16, "+
		"float32, float64", name)
}

func (d DType) info() dtypeInfo {
	if int(d) >= len(dtypes) {
		return dtypes[Invalid]
	}
	return dtypes[d]
}

// Size returns the bytes of one element, 0 for Invalid.
func (d DType) Size() int { return d.info().size }

// String returns the NumPy name, which ParseDType reads.
func (d DType) String() string { return d.info().name }

// Descr returns NumPy's type string for the bytes as stored, for example "<f4".
// BFloat16 gives "<u2", as NumPy has no such type.
func (d DType) Descr() string { return d.info().descr }

// IsFloat reports whether elements are floating-point numbers.
func (d DType) IsFloat() bool { return d >= Float16 && d <= Float64 }

// MarshalText writes the name, so that a DType is a string in JSON.
func (d DType) MarshalText() ([]byte, error) {
	if d.Size() == 0 {
		return nil, fmt.Errorf("tensor: dtype %d has no name", uint8(d))
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads the text that MarshalText writes.
func (d *DType) UnmarshalText(b []byte) error {
	v, err := ParseDType(string(b))
	if err == nil {
		*d = v
	}
	return err
}

// Half is an IEEE 754 binary16 number, as its bits.
type Half uint16

// Brain is a bfloat16 number (the upper half of a float32), as its bits.
type Brain uint16

// Float32 returns the exact value.
func (b Brain) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// BrainOf rounds f to the nearest bfloat16, ties to even; a NaN stays a (quiet) NaN.
func BrainOf(f float32) Brain {
	bits := math.Float32bits(f)
	if f != f {
		return Brain(bits>>16 | 0x40)
	}
	return Brain((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 returns the exact value.
func (h Half) Float32() float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h >> 10 & 0x1f)
	frac := uint32(h & 0x3ff)
	switch {
	case exp == 0x1f: // infinity, NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0: // zero, subnormal: frac * 2^-24, exact in float32
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// HalfOf rounds f to the nearest binary16, ties to even; too large becomes an infinity.
func HalfOf(f float32) Half {
	bits := math.Float32bits(f)
	sign := Half(bits >> 16 & 0x8000)
	mag := bits & 0x7fffffff
	switch {
	case mag > 0x7f800000: // NaN: keep the top payload bits, quiet
		return sign | 0x7e00 | Half(mag>>13&0x1ff)
	case mag >= 0x477ff000: // rounds to 65520 or more
		return sign | 0x7c00
	case mag < 0x38800000: // below 2^-14: subnormal, in units of 2^-24
		return sign | Half(math.RoundToEven(float64(math.Float32frombits(mag))*(1<<24)))
	}
	mag -= 112 << 23
	return sign | Half((mag+0xfff+mag>>13&1)>>13)
}

// Round returns the number of a type of floats that is nearest to f, ties to even; too large becomes an infinity. Of
// other types it is f.
func (d DType) Round(f float64) float64 {
	if !d.IsFloat() {
		return f
	}
	return d.float(d.floatWord(f))
}

// toOdd rounds f to a float32 such that a second rounding, to a shorter type, gives the same result as
// rounding f once: the last bit of an inexact result is 1.
func toOdd(f float64) float32 {
	near := float32(f)
	if float64(near) == f || f != f {
		return near
	}
	bits := math.Float32bits(near)
	if math.Abs(float64(near)) > math.Abs(f) {
		bits--
	}
	return math.Float32frombits(bits | 1)
}
