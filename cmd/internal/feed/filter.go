package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// filter keeps the records whose number in a field compares with some values in one way. Its JSON
// is [field, op, [value, ...]].
type filter struct {
	field  string
	op     string
	values []json.RawMessage // numbers, or names of classes
}

var comparisons = map[string]func(x float64, values []float64) bool{
	"==":     func(x float64, v []float64) bool { return x == v[0] },
	"!=":     func(x float64, v []float64) bool { return x != v[0] },
	"<":      func(x float64, v []float64) bool { return x < v[0] },
	"<=":     func(x float64, v []float64) bool { return x <= v[0] },
	">":      func(x float64, v []float64) bool { return x > v[0] },
	">=":     func(x float64, v []float64) bool { return x >= v[0] },
	"in":     func(x float64, v []float64) bool { return slices.Contains(v, x) },
	"not in": func(x float64, v []float64) bool { return !slices.Contains(v, x) },
}

// UnmarshalJSON reads a list of three.
func (f *filter) UnmarshalJSON(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if len(parts) != 3 {
		return fmt.Errorf("a filter of %d parts; it is [field, op, values]", len(parts))
	}
	return errors.Join(json.Unmarshal(parts[0], &f.field), json.Unmarshal(parts[1], &f.op), json.Unmarshal(parts[2], &f.values))
}

// MarshalJSON writes a list of three.
func (f filter) MarshalJSON() ([]byte, error) { return json.Marshal([]any{f.field, f.op, f.values}) }

// keep returns the records that all filters keep; nil if there are none of those.
func keep(filters []filter, src loader.Source, fields []store.Field) ([]int, error) {
	if len(filters) == 0 {
		return nil, nil
	}
	kept := make([]bool, src.Len())
	for i := range kept {
		kept[i] = true
	}
	for _, f := range filters {
		if err := f.apply(src, fields, kept); err != nil {
			return nil, fmt.Errorf("filter on %q: %w", f.field, err)
		}
	}
	out := []int{}
	for i, k := range kept {
		if k {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the filters keep none of %d records", len(kept))
	}
	return out, nil
}

// apply clears kept where the filter does not hold.
func (f filter) apply(src loader.Source, fields []store.Field, kept []bool) error {
	compare, values, err := f.resolve(fields)
	if err != nil {
		return err
	}
	if err := src.Retain(); err != nil {
		return err
	}
	defer src.Release()
	const step = 1 << 16
	for first := 0; first < len(kept); first += step {
		v, err := src.Slice(f.field, first, min(first+step, len(kept)))
		if err != nil {
			return err
		}
		numbers, err := numbersOf(v)
		if err != nil {
			return err
		}
		for i := range v.Len() {
			kept[first+i] = kept[first+i] && compare(numbers(i), values)
		}
	}
	return nil
}

// resolve returns the comparison, and the values as numbers.
func (f filter) resolve(fields []store.Field) (func(float64, []float64) bool, []float64, error) {
	at := slices.IndexFunc(fields, func(g store.Field) bool { return g.Name == f.field })
	if at < 0 {
		names := make([]string, len(fields))
		for i := range fields {
			names[i] = fields[i].Name
		}
		return nil, nil, fmt.Errorf("there is no such field%s", suggest.Hint(f.field, names))
	}
	g := fields[at]
	if g.Ragged || len(g.Shape) > 0 {
		return nil, nil, fmt.Errorf("its records are %v%v; filters are on single numbers", g.DType, g.Shape)
	}
	compare := comparisons[f.op]
	if compare == nil {
		return nil, nil, fmt.Errorf("there is no comparison %q; take ==, !=, <, <=, >, >=, in or not in", f.op)
	}
	if several := f.op == "in" || f.op == "not in"; !several && len(f.values) != 1 {
		return nil, nil, fmt.Errorf("%q takes one value, not %d", f.op, len(f.values))
	}
	var values []float64
	for _, text := range f.values {
		var name string
		var v float64
		if json.Unmarshal(text, &name) == nil {
			class := slices.Index(g.Classes, name)
			if class < 0 {
				return nil, nil, fmt.Errorf("there is no class %q%s", name, suggest.Hint(name, g.Classes))
			}
			v = float64(class)
		} else if err := json.Unmarshal(text, &v); err != nil {
			return nil, nil, fmt.Errorf("%s is not a number, nor the name of a class", text)
		}
		values = append(values, v)
	}
	return compare, values, nil
}

// numbersOf returns the records of a field of single numbers, as float64: integers beyond 2^53 are
// rounded.
func numbersOf(v tensor.View) (func(i int) float64, error) {
	switch v.DType() {
	case tensor.Uint8:
		return convert[uint8](v), nil
	case tensor.Int8:
		return convert[int8](v), nil
	case tensor.Uint16:
		return convert[uint16](v), nil
	case tensor.Int16:
		return convert[int16](v), nil
	case tensor.Uint32:
		return convert[uint32](v), nil
	case tensor.Int32:
		return convert[int32](v), nil
	case tensor.Uint64:
		return convert[uint64](v), nil
	case tensor.Int64:
		return convert[int64](v), nil
	case tensor.Float32:
		return convert[float32](v), nil
	case tensor.Float64:
		return convert[float64](v), nil
	case tensor.Bool:
		b := v.Bytes()
		return func(i int) float64 { return math.Min(1, float64(b[i])) }, nil
	}
	return nil, fmt.Errorf("its numbers are %v, which filters and labels cannot be", v.DType())
}

func convert[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64](v tensor.View) func(i int) float64 {
	values := tensor.As[T](v)
	return func(i int) float64 { return float64(values[i]) }
}
