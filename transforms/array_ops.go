package transforms

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// Cast converts elements to another type. Integers lose the fraction, as in NumPy, but saturate at
// the limits of their type, where NumPy wraps around; floats are rounded to nearest even.
type Cast struct {
	DType tensor.DType `json:"dtype"`
}

// Resolve checks DType.
func (t Cast) Resolve() (ArrayTransform, error) {
	if t.DType.Size() == 0 {
		return t, errors.New("no dtype")
	}
	return t, nil
}

// Output returns the field with the new type.
func (t Cast) Output(in tensor.Spec) (tensor.Spec, error) {
	in.DType = t.DType
	return in, nil
}

// Apply does nothing: the runner rounds every transform's result to its output type.
func (t Cast) Apply(_ []float64, _ int, _ tensor.Spec) {}

// needFloat refuses a field of integers, where a transform makes fractions that rounding would
// lose.
func needFloat(in tensor.Spec) (tensor.Spec, error) {
	if !in.DType.IsFloat() {
		return in, fmt.Errorf("input is %v; put Cast to a float type before it", in.DType)
	}
	return in, nil
}

// Scale is x*Factor + Offset.
type Scale struct {
	Factor *float64 `json:"factor" default:"1" in:"(-inf,inf)"`
	Offset float64  `json:"offset" in:"(-inf,inf)"`
}

// Output refuses integers, which cannot hold the result.
func (Scale) Output(in tensor.Spec) (tensor.Spec, error) { return needFloat(in) }

// Apply scales.
func (t Scale) Apply(x []float64, _ int, _ tensor.Spec) {
	kernel.Scale(x, *t.Factor, t.Offset)
}

// Standardize computes (x - Mean) / Std with one mean for the whole record, for each position of an
// axis, or for each element. NaN stays NaN.
type Standardize struct {
	Mean []float64 `json:"mean"` // one, one for each position of Axis, or the elements of an array of Shape
	Std  []float64 `json:"std"`  // as many
	Axis int       `json:"axis"` // of the record; -1 is the last

	// Shape makes Mean and Std arrays that are broadcast to a record as in NumPy, in place of Axis: [37, 1, 1] for each
	// level, [721, 1440] for each point of a grid.
	Shape tensor.Shape `json:"shape,omitempty"`
}

// broadcast returns the strides of Mean along the axes of a record, as NumPy's broadcasting does:
// stride 0 repeats Mean along an axis.
func (t Standardize) broadcast(record tensor.Shape) ([]int, error) {
	if len(t.Shape) > len(record) {
		return nil, errors.New("too many axes")
	}
	strides, own, first := make([]int, len(record)), stridesOf(t.Shape), len(record)-len(t.Shape)
	for k, n := range t.Shape {
		if n != 1 {
			strides[first+k] = own[k]
			if n != record[first+k] {
				return nil, errors.New("another length")
			}
		}
	}
	return strides, nil
}

// applyShape standardises by arrays of means and deviations. It works along the last axis, one
// contiguous row at a time: x may begin in the middle of a row, because the runner works in chunks.
func (t Standardize) applyShape(x []float64, first int, record tensor.Shape) {
	strides, err := t.broadcast(record)
	if err != nil || len(record) == 0 { // Output has refused the first
		return
	}
	last := len(record) - 1
	for len(x) > 0 {
		row, column := first/record[last], first%record[last]
		n := min(record[last]-column, len(x))
		at := column * strides[last]
		for k := last - 1; k >= 0; k-- {
			at += row % record[k] * strides[k]
			row /= record[k]
		}
		if strides[last] == 0 {
			kernel.Standardize(x[:n], t.Mean[at], t.Std[at])
		} else {
			for i := range n {
				x[i] = (x[i] - t.Mean[at+i]) / t.Std[at+i]
			}
		}
		x, first = x[n:], first+n
	}
}

// Resolve checks that there are as many deviations as means, and that all are finite. A deviation
// of 0 would make infinities.
func (t Standardize) Resolve() (ArrayTransform, error) {
	if t.Shape != nil && (slices.Min(t.Shape) < 1 || t.Shape.Elems() != len(t.Mean)) {
		return t, fmt.Errorf("%d means for shape %v", len(t.Mean), t.Shape)
	}
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

// Output refuses integers, and means that do not fit the axis or the shape of the field.
func (t Standardize) Output(in tensor.Spec) (tensor.Spec, error) {
	if t.Shape != nil {
		if _, err := t.broadcast(in.Shape); err != nil || in.Ragged {
			return in, fmt.Errorf("means of shape %v cannot be broadcast to records of shape %v", t.Shape, in.Shape)
		}
		return needFloat(in)
	}
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

// Apply standardises x. Elements at one position of the axis share a mean, and are one call of the
// kernel.
func (t Standardize) Apply(x []float64, first int, in tensor.Spec) {
	if t.Shape != nil {
		t.applyShape(x, first, in.Shape)
		return
	}
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

// Output returns the field as it is: numbers of all types can be clipped.
func (Clip) Output(in tensor.Spec) (tensor.Spec, error) { return in, nil }

// Apply limits each number. NaN stays NaN.
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

// Log1p computes log(1 + x), with full precision for small x too: minus infinity for -1, NaN below.
type Log1p struct{}

// Output refuses integers, which cannot hold the result.
func (Log1p) Output(in tensor.Spec) (tensor.Spec, error) { return needFloat(in) }

func (Log1p) Apply(x []float64, _ int, _ tensor.Spec) {
	for i, v := range x {
		x[i] = math.Log1p(v)
	}
}

// Log computes log(x + Offset): minus infinity for a sum of 0, NaN below.
type Log struct {
	Offset float64 `json:"offset" in:"(-inf,inf)"`
}

// Output refuses integers, which cannot hold the result.
func (Log) Output(in tensor.Spec) (tensor.Spec, error) { return needFloat(in) }

// Apply takes logarithms.
func (t Log) Apply(x []float64, _ int, _ tensor.Spec) {
	for i, v := range x {
		x[i] = math.Log(v + t.Offset)
	}
}

// FillNaN replaces each NaN by Value. To know afterwards which numbers were NaN, apply IsFinite to another field of the
// same array.
type FillNaN struct {
	Value float64 `json:"value" in:"(-inf,inf)"`
}

// Output refuses integers, which have no NaN.
func (FillNaN) Output(in tensor.Spec) (tensor.Spec, error) { return needFloat(in) }

// Apply replaces.
func (t FillNaN) Apply(x []float64, _ int, _ tensor.Spec) {
	for i, v := range x {
		if v != v {
			x[i] = t.Value
		}
	}
}

// IsFinite converts each number to a bool: false for NaN and the infinities.
type IsFinite struct{}

// Output returns a field of bools, and refuses integers, which are always finite.
func (IsFinite) Output(in tensor.Spec) (tensor.Spec, error) {
	in, err := needFloat(in)
	in.DType = tensor.Bool
	return in, err
}

// Apply subtracts each number from itself: the difference is 0 for finite numbers, and NaN for all
// others.
func (IsFinite) Apply(x []float64, _ int, _ tensor.Spec) {
	for i, v := range x {
		x[i] = 0
		if v-v == 0 {
			x[i] = 1
		}
	}
}

// OneHot replaces every integer by a vector along a new last axis: 1 at the integer's place, 0
// elsewhere. A record with an integer outside of 0 to Classes-1 is an error.
type OneHot struct {
	// length of the vector
	Classes int `json:"classes" in:"[1,inf)"`
	// Float32, which is the default, or Uint8
	DType tensor.DType `json:"dtype" default:"float32" choices:"float32 uint8"`
}

// Output adds the last axis. It refuses floats: 2.5 is no class.
func (t OneHot) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.DType.IsFloat() {
		return in, fmt.Errorf("input is %v; put Cast to an integer type before it", in.DType)
	}
	in.DType, in.Shape = t.DType, append(slices.Clone(in.Shape), t.Classes)
	return in, nil
}

// Apply is never called: OneHot is an ArrayRemaker.
func (OneHot) Apply(_ []float64, _ int, _ tensor.Spec) {}

// Remade returns the number of elements in n vectors.
func (t OneHot) Remade(n int, _ tensor.Spec) int { return n * t.Classes }

// Remake makes the vectors.
func (t OneHot) Remake(dst, src []float64, _ tensor.Spec) error {
	clear(dst)
	for i, v := range src {
		if !(v >= 0 && v < float64(t.Classes)) {
			return fmt.Errorf("element %d is %.0f, which is not one of the classes 0 to %d", i, v, t.Classes-1)
		}
		dst[i*t.Classes+int(v)] = 1
	}
	return nil
}

// Reshape gives the record, or each row of a field of variable length, another shape of as
// many elements, in their order.
type Reshape struct {
	Shape tensor.Shape `json:"shape"` // one axis may be -1: what the others leave
}

// Resolve checks Shape.
func (t Reshape) Resolve() (ArrayTransform, error) {
	open := 0
	for _, n := range t.Shape {
		if n == -1 {
			open++
		} else if n < 1 {
			return t, fmt.Errorf("shape %v: an axis must be positive, or -1", t.Shape)
		}
	}
	if open > 1 {
		return t, fmt.Errorf("shape %v: only one axis may be -1", t.Shape)
	}
	if t.Shape == nil {
		return t, errors.New("no shape; write [] for a single number")
	}
	return t, nil
}

// Output returns the field with the new shape, and refuses a shape with another number of elements.
// The names of the axes are dropped, since no name fits the new axes.
func (t Reshape) Output(in tensor.Spec) (tensor.Spec, error) {
	misfit := fmt.Errorf("shape %v of %d elements cannot become %v", in.Shape, in.Shape.Elems(), t.Shape)
	left, open := in.Shape.Elems(), -1
	for i, n := range t.Shape {
		switch {
		case n == -1:
			open = i
		case left%n != 0:
			return in, misfit
		default:
			left /= n
		}
	}
	in.Shape, in.Dims = slices.Clone(t.Shape), nil
	if open >= 0 {
		in.Shape[open] = left
	} else if left != 1 {
		return in, misfit
	}
	return in, nil
}

// Apply does nothing: the elements keep their order.
func (Reshape) Apply(_ []float64, _ int, _ tensor.Spec) {}

// PadTruncate gives the first axis a fixed Length: longer records are cut at the end, shorter ones
// are filled with Value. A field of variable length becomes one of fixed length; for any other
// field the first axis within the record is meant.
type PadTruncate struct {
	Length int     `json:"length" in:"[1,inf)"`
	Value  float64 `json:"value" in:"(-inf,inf)"`
}

// Output sets the length of the first axis. It refuses records without an axis, and a Value that
// the type cannot hold: a rounded Value would look like data.
func (t PadTruncate) Output(in tensor.Spec) (tensor.Spec, error) {
	if v := in.DType.Saturate(t.Value); !in.DType.IsFloat() && v != t.Value {
		return in, fmt.Errorf("value %v is none of %v", t.Value, in.DType)
	}
	switch {
	case in.Ragged:
		in.Shape, in.Ragged = append(tensor.Shape{t.Length}, in.Shape...), false
	case len(in.Shape) == 0:
		return in, errors.New("input is a single number; it has no axis")
	default:
		in.Shape = append(tensor.Shape{t.Length}, in.Shape[1:]...)
	}
	return in, nil
}

// Apply is never called: PadTruncate is an ArrayRemaker.
func (PadTruncate) Apply(_ []float64, _ int, _ tensor.Spec) {}

// Remade returns the number of elements in Length rows.
func (t PadTruncate) Remade(_ int, in tensor.Spec) int {
	row := in.Shape
	if !in.Ragged {
		row = in.Shape[1:]
	}
	return t.Length * row.Elems()
}

// Remake copies what fits and fills the rest.
func (t PadTruncate) Remake(dst, src []float64, _ tensor.Spec) error {
	for i := copy(dst, src); i < len(dst); i++ {
		dst[i] = t.Value
	}
	return nil
}
