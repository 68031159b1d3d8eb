package transforms

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// Cast converts to another type. Integers lose the fraction, as in NumPy, but stop at the
// limits of their type; floats are rounded to nearest even.
type Cast struct {
	DType tensor.DType `json:"dtype"`
}

// Op returns "Cast".
func (Cast) Op() string { return "Cast" }

// Resolve checks DType.
func (t Cast) Resolve() (ArrayTransform, error) {
	if t.DType.Size() == 0 {
		return t, errors.New("no dtype")
	}
	return t, nil
}

// Output changes the type.
func (t Cast) Output(in tensor.Spec) (tensor.Spec, error) {
	in.DType = t.DType
	return in, nil
}

// Apply does nothing: the runner rounds.
func (t Cast) Apply(_ []float64, _ int, _ tensor.Spec) {}

// needFloat reports a field that cannot hold fractions.
func needFloat(in tensor.Spec) (tensor.Spec, error) {
	if !in.DType.IsFloat() {
		return in, fmt.Errorf("input is %v; put Cast to a float type before it", in.DType)
	}
	return in, nil
}

// Scale is x*Factor + Offset.
type Scale struct {
	Factor float64 `json:"factor"` // 0 means 1
	Offset float64 `json:"offset"`
}

// Op returns "Scale".
func (Scale) Op() string { return "Scale" }

// Resolve fills in Factor.
func (t Scale) Resolve() (ArrayTransform, error) {
	if t.Factor == 0 {
		t.Factor = 1
	}
	if v := t.Factor + t.Offset; math.IsNaN(v) || math.IsInf(v, 0) {
		return t, fmt.Errorf("factor %v and offset %v must be finite", t.Factor, t.Offset)
	}
	return t, nil
}

// Output reports integers.
func (Scale) Output(in tensor.Spec) (tensor.Spec, error) { return needFloat(in) }

// Apply scales.
func (t Scale) Apply(x []float64, _ int, _ tensor.Spec) {
	kernel.Scale(x, t.Factor, t.Offset)
}

// Standardize is (x - Mean) / Std, for the whole record or for each position of an axis.
type Standardize struct {
	Mean []float64 `json:"mean"` // one, or one for each position of Axis
	Std  []float64 `json:"std"`  // as many
	Axis int       `json:"axis"` // of the record; -1 is the last
}

// Op returns "Standardize".
func (Standardize) Op() string { return "Standardize" }

// Resolve checks the numbers.
func (t Standardize) Resolve() (ArrayTransform, error) {
	if len(t.Mean) == 0 || len(t.Mean) != len(t.Std) {
		return t, fmt.Errorf("%d means and %d deviations; must be as many, at least 1", len(t.Mean), len(t.Std))
	}
	for i, s := range t.Std {
		if m := t.Mean[i]; math.IsNaN(m) || math.IsInf(m, 0) || !(s > 0) || math.IsInf(s, 0) {
			return t, fmt.Errorf("mean %v and deviation %v must be finite, the deviation positive", m, s)
		}
	}
	return t, nil
}

// Output reports integers, and numbers that do not fit the axis.
func (t Standardize) Output(in tensor.Spec) (tensor.Spec, error) {
	if len(t.Mean) > 1 {
		axis := t.axis(in.Shape)
		if axis < 0 || axis >= len(in.Shape) {
			return in, fmt.Errorf("axis %d does not exist in shape %v", t.Axis, in.Shape)
		}
		if in.Shape[axis] != len(t.Mean) {
			return in, fmt.Errorf("%d means for an axis of %d in shape %v", len(t.Mean), in.Shape[axis], in.Shape)
		}
	}
	return needFloat(in)
}

func (t Standardize) axis(s tensor.Shape) int {
	if t.Axis < 0 {
		return len(s) + t.Axis
	}
	return t.Axis
}

// Apply standardises, as many elements at a time as are at one position of the axis.
func (t Standardize) Apply(x []float64, first int, in tensor.Spec) {
	inner := first + len(x) // elements from one position to the next
	if len(t.Mean) > 1 {
		inner = in.Shape[t.axis(in.Shape)+1:].Elems()
	}
	for len(x) > 0 {
		n := min(inner-first%inner, len(x))
		c := first / inner % len(t.Mean)
		kernel.Standardize(x[:n], t.Mean[c], t.Std[c])
		x, first = x[n:], first+n
	}
}

// Clip limits numbers to a range.
type Clip struct {
	Min *float64 `json:"min"` // nil means no limit
	Max *float64 `json:"max"` // nil means no limit
}

// Op returns "Clip".
func (Clip) Op() string { return "Clip" }

// Resolve checks the range.
func (t Clip) Resolve() (ArrayTransform, error) {
	if t.Min == nil && t.Max == nil {
		return t, errors.New("neither min nor max is given")
	}
	if t.Min != nil && t.Max != nil && !(*t.Min <= *t.Max) {
		return t, fmt.Errorf("min %v is not below max %v", *t.Min, *t.Max)
	}
	return t, nil
}

// Output reports nothing: all numbers can be clipped.
func (Clip) Output(in tensor.Spec) (tensor.Spec, error) { return in, nil }

// Apply limits. NaN stays NaN.
func (t Clip) Apply(x []float64, _ int, _ tensor.Spec) {
	lo, hi := math.Inf(-1), math.Inf(1)
	if t.Min != nil {
		lo = *t.Min
	}
	if t.Max != nil {
		hi = *t.Max
	}
	kernel.Clip(x, lo, hi)
}
