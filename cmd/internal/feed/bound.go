package feed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// value is an operand of a filter's comparison: an integer of any size, or a float.
type value struct {
	integer *big.Int // nil for a float
	float   float64
}

// valueOf reads a value of a filter. A number without a point and an exponent is an integer.
func valueOf(text json.RawMessage, classes []string) (value, error) {
	if string(text) == "null" { // which json.Unmarshal takes for any type
		return value{}, errors.New("null is not a number, nor the name of a class")
	}
	var name string
	if json.Unmarshal(text, &name) == nil {
		class := slices.Index(classes, name)
		if class < 0 {
			return value{}, fmt.Errorf("there is no class %q%s", name, suggest.Hint(name, classes))
		}
		return value{integer: big.NewInt(int64(class))}, nil
	}
	var special struct {
		Float string `json:"float"`
	}
	if json.Unmarshal(text, &special) == nil {
		for name, f := range map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)} {
			if special.Float == name {
				return value{float: f}, nil
			}
		}
	}
	if n, ok := new(big.Int).SetString(string(text), 10); ok && !strings.HasPrefix(string(text), "+") {
		return value{integer: n}, nil
	}
	var f float64
	if err := json.Unmarshal(text, &f); err != nil {
		return value{}, fmt.Errorf("%.100s is not a number, nor the name of a class", text)
	}
	return value{float: f}, nil
}

// bound is where a value stands among the numbers of a type.
//
// Every number of the type compares with the value as it does with at; at itself is below (-1), equal
// to (0) or above (1) the value, as tie says. So integers compare exactly with any integer or float. On a
// field of floats the value is first rounded to their type, as NumPy does with Python's numbers: 0.1 is
// the float32 next to 0.1. One that would be infinite then is beyond the largest number instead.
type bound[T int64 | uint64 | float64] struct {
	at  T
	tie int
	nan bool
}

// compare returns -1, 0 or 1 for a number below, at or above the bound. Neither is a NaN.
func (b bound[T]) compare(x T) int {
	if c := cmp.Compare(x, b.at); c != 0 || x != b.at {
		return c
	}
	return b.tie
}

// amongIntegers returns the bound of a value among the integers from low to high.
func amongIntegers[T int64 | uint64](v value, low, high T) bound[T] {
	n, tie := v.integer, 0
	if n == nil {
		switch {
		case math.IsNaN(v.float):
			return bound[T]{nan: true}
		case math.IsInf(v.float, 1):
			return bound[T]{at: high, tie: -1}
		case math.IsInf(v.float, -1):
			return bound[T]{at: low, tie: 1}
		}
		down := math.Floor(v.float)
		n, _ = new(big.Float).SetFloat64(down).Int(nil)
		if down != v.float {
			tie = -1
		}
	}
	switch {
	case n.Cmp(bigOf(low)) < 0:
		return bound[T]{at: low, tie: 1}
	case n.Cmp(bigOf(high)) > 0:
		return bound[T]{at: high, tie: -1}
	case n.Sign() < 0:
		return bound[T]{at: T(n.Int64()), tie: tie}
	}
	return bound[T]{at: T(n.Uint64()), tie: tie}
}

func bigOf[T int64 | uint64](n T) *big.Int {
	if n < 0 {
		return big.NewInt(int64(n))
	}
	return new(big.Int).SetUint64(uint64(n))
}

// amongFloats returns the bound of a value among the numbers of a type of floats.
func amongFloats(v value, t tensor.DType) bound[float64] {
	f := v.float
	if v.integer != nil {
		f, _ = new(big.Float).SetInt(v.integer).Float64()
	}
	if math.IsNaN(f) {
		return bound[float64]{nan: true}
	}
	finite := v.integer != nil || !math.IsInf(f, 0)
	rounded := t.Round(f)
	if finite && math.IsInf(rounded, 0) {
		largest := math.Copysign(largestOf[t], rounded)
		return bound[float64]{at: largest, tie: cmp.Compare(0, rounded)}
	}
	return bound[float64]{at: rounded}
}

// largestOf has the largest finite number of each type of floats.
var largestOf = map[tensor.DType]float64{
	tensor.Float16: 65504, tensor.BFloat16: float64(tensor.Brain(0x7f7f).Float32()), tensor.Float32: math.MaxFloat32,
	tensor.Float64: math.MaxFloat64,
}
