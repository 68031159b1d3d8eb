package transforms

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// sparseTransform is an ArrayTransform that also works on rows that are mostly zero.
type sparseTransform interface {
	ArrayTransform

	// pairs changes the columns and the values of a record of the field in, which come by turns, and returns those that
	// are left.
	pairs(x []float64, in tensor.Spec) []float64
}

// boundTransform is an ArrayTransform that computes something from a field before the records of it.
type boundTransform interface {
	ArrayTransform
	bind(in tensor.Spec) ArrayTransform
}

func init() {
	arrayRegistry["NormalizeTotal"] = decode[ArrayTransform, NormalizeTotal]
	arrayRegistry["SelectFeatures"] = decode[ArrayTransform, SelectFeatures]
	arrayRegistry["ToDense"] = decode[ArrayTransform, ToDense]
}

// checkSparse refuses a transform of sparse rows that would change values which are not stored.
func checkSparse(t ArrayTransform, in tensor.Spec) error {
	_, ok := t.(sparseTransform)
	if _, dense := t.(ToDense); ok || dense || in.Content != tensor.Sparse {
		return nil
	}
	return errors.New("works on arrays, and the field has sparse rows; put ToDense before it")
}

// pairs implements sparseTransform: the runner rounds.
func (t Cast) pairs(x []float64, _ tensor.Spec) []float64 { return x }

// pairs implements sparseTransform.
func (Log1p) pairs(x []float64, _ tensor.Spec) []float64 {
	for i := 1; i < len(x); i += 2 {
		x[i] = math.Log1p(x[i])
	}
	return x
}

// NormalizeTotal scales the values of a record so that their sum is TargetSum. A record whose sum is 0 stays as it is.
type NormalizeTotal struct {
	TargetSum *float64 `json:"target_sum" default:"10000" in:"(0,inf)"`
}

// Output reports integers, and arrays of several axes.
func (NormalizeTotal) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.Content != tensor.Sparse && (in.Ragged || len(in.Shape) != 1) {
		return in, fmt.Errorf("records of shape %v; they must have one axis, or be sparse", in.Shape)
	}
	return needFloat(in)
}

// Apply is not called.
func (NormalizeTotal) Apply([]float64, int, tensor.Spec) {}

// Remade implements ArrayRemaker.
func (NormalizeTotal) Remade(n int, _ tensor.Spec) int { return n }

// Remake implements ArrayRemaker.
func (t NormalizeTotal) Remake(dst, src []float64, _ tensor.Spec) error {
	copy(dst, src)
	t.scale(dst, 0, 1)
	return nil
}

func (t NormalizeTotal) pairs(x []float64, _ tensor.Spec) []float64 {
	t.scale(x, 1, 2)
	return x
}

func (t NormalizeTotal) scale(x []float64, first, step int) {
	sum := 0.0
	for i := first; i < len(x); i += step {
		sum += x[i]
	}
	if sum == 0 {
		return
	}
	for i := first; i < len(x); i += step {
		x[i] *= *t.TargetSum / sum
	}
}

// SelectFeatures keeps some columns of sparse rows, or of records of one axis, in the order in which they are named.
type SelectFeatures struct {
	Features []string `json:"features,omitempty"` // by their names
	Columns  []int    `json:"columns,omitempty"`  // or by their numbers

	places []int // of bound ones: the new number of each column, -1 for those that are left out
}

// Resolve checks that there are features.
func (t SelectFeatures) Resolve() (ArrayTransform, error) {
	if (len(t.Features) == 0) == (len(t.Columns) == 0) {
		return t, errors.New("give names of features, or numbers of columns")
	}
	return t, nil
}

// Output reports features that are not there, or come twice.
func (t SelectFeatures) Output(in tensor.Spec) (tensor.Spec, error) {
	width := in.Width
	if in.Content != tensor.Sparse {
		if in.Ragged || len(in.Shape) != 1 {
			return in, fmt.Errorf("records of shape %v; they must have one axis, or be sparse", in.Shape)
		}
		width = in.Shape[0]
	}
	columns, err := t.columns(in, width)
	if err != nil {
		return in, err
	}
	if in.Features != nil {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = in.Features[c]
		}
		in.Features = names
	}
	if in.Content == tensor.Sparse {
		in.Width = len(columns)
	} else {
		in.Shape = tensor.Shape{len(columns)}
	}
	return in, nil
}

// columns returns the numbers of the columns that are kept.
func (t SelectFeatures) columns(in tensor.Spec, width int) ([]int, error) {
	columns := slices.Clone(t.Columns)
	if len(t.Features) > 0 && in.Features == nil {
		return nil, errors.New("the field has no names of features; give columns, their numbers")
	}
	if len(t.Features) > 0 {
		at := make(map[string]int, len(in.Features))
		for i, name := range in.Features {
			if _, twice := at[name]; twice {
				at[name] = -1
				continue
			}
			at[name] = i
		}
		for _, name := range t.Features {
			i, ok := at[name]
			if !ok {
				return nil, fmt.Errorf("there is no feature %q%s", name, suggest.Hint(name, in.Features))
			}
			if i < 0 {
				return nil, fmt.Errorf("several features are called %q; give columns, their numbers", name)
			}
			columns = append(columns, i)
		}
	}
	seen := make(map[int]bool, len(columns))
	for _, c := range columns {
		if c < 0 || c >= width || seen[c] {
			return nil, fmt.Errorf("column %d of %d is not there, or comes twice", c, width)
		}
		seen[c] = true
	}
	return columns, nil
}

func (t SelectFeatures) bind(in tensor.Spec) ArrayTransform {
	width := in.Width
	if in.Content != tensor.Sparse {
		width = in.Shape[0]
	}
	columns, err := t.columns(in, width)
	if err != nil { // Output has refused it
		return t
	}
	t.Columns, t.Features, t.places = columns, nil, slices.Repeat([]int{-1}, width)
	for i, c := range columns {
		t.places[c] = i
	}
	return t
}

// Apply is not called.
func (SelectFeatures) Apply([]float64, int, tensor.Spec) {}

// Remade implements ArrayRemaker.
func (t SelectFeatures) Remade(int, tensor.Spec) int { return max(len(t.Columns), len(t.Features)) }

// Remake implements ArrayRemaker.
func (t SelectFeatures) Remake(dst, src []float64, _ tensor.Spec) error {
	for i, c := range t.Columns {
		dst[i] = src[c]
	}
	return nil
}

func (t SelectFeatures) pairs(x []float64, _ tensor.Spec) []float64 {
	n := 0
	for i := 0; i < len(x); i += 2 {
		if to := t.places[int(x[i])]; to >= 0 {
			x[n], x[n+1] = float64(to), x[i+1]
			n += 2
		}
	}
	return x[:n]
}

// ToDense makes records with a value for each column of sparse rows: 0 where there is no pair, and the sum of several.
type ToDense struct{}

// Output makes records of one axis, and reports fields that are not sparse.
func (ToDense) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.Content != tensor.Sparse {
		return in, errors.New("the field has arrays, and no sparse rows; leave ToDense out")
	}
	in.Content, in.Ragged, in.Shape, in.Width = "", false, tensor.Shape{in.Width}, 0
	return in, nil
}

// Apply is not called.
func (ToDense) Apply([]float64, int, tensor.Spec) {}

// Remade implements ArrayRemaker.
func (ToDense) Remade(_ int, in tensor.Spec) int { return in.Width }

// Remake implements ArrayRemaker.
func (ToDense) Remake(dst, src []float64, _ tensor.Spec) error {
	clear(dst)
	for i := 0; i < len(src); i += 2 {
		dst[int(src[i])] += src[i+1]
	}
	return nil
}

// sparse takes a record through the transforms of sparse rows, and returns the pairs that are left and the number of
// the transform that comes next.
func (r *ArrayRunner) sparse(src []byte) (pairs []float64, next int, err error) {
	in := r.in()
	n := len(src) / in.DType.Size()
	if cap(r.now) < n {
		r.now = make([]float64, n)
	}
	pairs = r.now[:n]
	load(pairs, src, in.DType)
	for i := 0; i < n; i += 2 {
		if c := pairs[i]; !(c >= 0 && c < float64(in.Width)) {
			return nil, 0, fmt.Errorf("column %v of %d", c, in.Width)
		}
	}
	for next < len(r.ts) {
		t, ok := r.ts[next].(sparseTransform)
		if !ok || r.specs[next].Content != tensor.Sparse {
			break
		}
		pairs = t.pairs(pairs, r.specs[next])
		next++
		roundAll(pairs, r.specs[next].DType)
	}
	return pairs, next, nil
}

// scatter fills a record of float32 with pairs.
func scatter(dst []byte, pairs []float64) {
	x := tensor.Elements[float32](dst)
	clear(x)
	for i := 0; i < len(pairs); i += 2 {
		x[int(pairs[i])] += float32(pairs[i+1])
	}
}

// Append appends what the transforms make of a record to dst: for pipelines whose records are of any length.
func (r *ArrayRunner) Append(dst, src []byte) ([]byte, error) {
	if r.out().Content != tensor.Sparse {
		n := r.OutputBytes(len(src))
		from := len(dst)
		dst = slices.Grow(dst, n)[:from+n]
		return dst, r.Do(dst[from:], src)
	}
	pairs, _, err := r.sparse(src)
	if err != nil {
		return dst, err
	}
	n, from := len(pairs)*r.out().DType.Size(), len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	save(dst[from:], pairs, r.out().DType)
	return dst, nil
}
