package transforms

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/penstock/penstock/tensor"
)

// Axis is an axis of a record: a name of [tensor.Spec].Dims or a number, "0" for the first axis after the axis of the
// records, "-1" for the last. In JSON, numbers need no quotes.
type Axis string

// UnmarshalJSON reads a name or a number.
func (a *Axis) UnmarshalJSON(text []byte) error {
	var n int
	if err := json.Unmarshal(text, &n); err == nil {
		*a = Axis(strconv.Itoa(n))
		return nil
	}
	var name string
	err := json.Unmarshal(text, &name)
	*a = Axis(name)
	return err
}

// in returns the number of the axis in records of a field, or -1 if the field names its axes and
// none has this name. A missing name is no error here, because one pipeline may serve fields with
// and without a time axis.
func (a Axis) in(spec tensor.Spec) (int, error) {
	rank := len(spec.Shape)
	if n, err := strconv.Atoi(string(a)); err == nil {
		if n < -rank || n >= rank {
			return -1, fmt.Errorf("axis %d does not exist in shape %v", n, spec.Shape)
		}
		return (n + rank) % rank, nil
	}
	if len(spec.Dims) != rank+1 {
		return -1, fmt.Errorf("the axes of field %q have no names, so that %q is not known; give their numbers", spec.Name,
			a)
	}
	return slices.Index(spec.Dims[1:], string(a)), nil
}

// axesIn returns the numbers of axes in records of a field, -1 for axes that the field does not
// have. At least one axis must exist: a pipeline that names none of a field's axes is probably
// misspelt.
func axesIn(axes []Axis, spec tensor.Spec) ([]int, error) {
	if spec.Ragged {
		return nil, errors.New("records have lengths of their own, and no axes")
	}
	list := make([]int, len(axes))
	found := false
	for i, a := range axes {
		n, err := a.in(spec)
		if err != nil {
			return nil, err
		}
		if n >= 0 && slices.Contains(list[:i], n) {
			return nil, fmt.Errorf("axis %s is named twice", a)
		}
		list[i], found = n, found || n >= 0
	}
	if !found {
		return nil, fmt.Errorf("field %q has none of the axes %q; it has %q", spec.Name, axes, spec.Dims)
	}
	return list, nil
}

// checkAxes returns an error if axes is empty or names an axis twice.
func checkAxes(axes []Axis) error {
	if len(axes) == 0 {
		return errors.New("axes are missing: names, or numbers such as -1 for the last")
	}
	for i, a := range axes {
		if a == "" || slices.Contains(axes[:i], a) {
			return fmt.Errorf("axes %q: each must have a name or a number, and come once", axes)
		}
	}
	return nil
}

// stridesOf returns the strides of an array in C order: the distance in elements between neighbors
// along each axis.
func stridesOf(shape []int) []int {
	strides, n := make([]int, len(shape)), 1
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = n
		n *= shape[k]
	}
	return strides
}
