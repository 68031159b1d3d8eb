package transforms

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// sparseTransform is an ArrayTransform that also works on sparse rows, of which only the values
// that are not zero are stored. It must map 0 to 0.
type sparseTransform interface {
	ArrayTransform

	// pairs changes a record of the field in. x has the columns and the values of the record's pairs by turns: column,
	// value, column, value. The result is the part of x with the pairs that are left.
	pairs(x []float64, in tensor.Spec) []float64
}

// boundTransform is an ArrayTransform that computes a table from the field's spec, once, and not
// for each record.
type boundTransform interface {
	ArrayTransform
	bind(in tensor.Spec) ArrayTransform
}

func init() {
	arrayRegistry["NormalizeTotal"] = decode[ArrayTransform, NormalizeTotal]
	arrayRegistry["SelectFeatures"] = decode[ArrayTransform, SelectFeatures]
	arrayRegistry["ToDense"] = decode[ArrayTransform, ToDense]
}

// checkSparse refuses a transform that would change values which a sparse row does not store: Scale
// with an Offset, for example, makes zeros into other numbers.
func checkSparse(t ArrayTransform, in tensor.Spec) error {
	_, ok := t.(sparseTransform)
	if _, dense := t.(ToDense); ok || dense || in.Content != tensor.Sparse {
		return nil
	}
	return errors.New("works on arrays, and the field has sparse rows; put ToDense before it")
}

// pairs returns the pairs as they are: the runner rounds.
func (t Cast) pairs(x []float64, _ tensor.Spec) []float64 { return x }

// pairs takes the logarithm of the values, which stand at odd places; log(1 + 0) is 0.
func (Log1p) pairs(x []float64, _ tensor.Spec) []float64 {
	for i := 1; i < len(x); i += 2 {
		x[i] = math.Log1p(x[i])
	}
	return x
}

// NormalizeTotal scales the values of a record so that their sum is TargetSum, as counts of genes
// are compared between cells. A record whose sum is 0 does not change.
type NormalizeTotal struct {
	TargetSum *float64 `json:"target_sum" default:"10000" in:"(0,inf)"`
}

// Output refuses integers, and arrays with several axes.
func (NormalizeTotal) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.Content != tensor.Sparse && (in.Ragged || len(in.Shape) != 1) {
		return in, fmt.Errorf("records of shape %v; they must have one axis, or be sparse", in.Shape)
	}
	return needFloat(in)
}

// Apply is never called: NormalizeTotal is an ArrayRemaker.
func (NormalizeTotal) Apply([]float64, int, tensor.Spec) {}

// Remade returns n: the number of elements stays the same.
func (NormalizeTotal) Remade(n int, _ tensor.Spec) int { return n }

// Remake copies the record, and scales the copy.
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

// Output refuses features that do not exist or are named twice.
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

// columns returns the numbers of the kept columns. A name that several features have is an error,
// as it is not known which feature is meant.
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

// Apply is never called: SelectFeatures is an ArrayRemaker.
func (SelectFeatures) Apply([]float64, int, tensor.Spec) {}

// Remade returns the number of kept columns.
func (t SelectFeatures) Remade(int, tensor.Spec) int { return max(len(t.Columns), len(t.Features)) }

// Remake copies the kept columns.
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

// ToDense makes records with a value for each column of sparse rows: 0 for a column without a pair,
// and the sum for a column with several pairs.
type ToDense struct{}

// Output returns a field of one axis, and refuses fields that are not sparse.
func (ToDense) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.Content != tensor.Sparse {
		return in, errors.New("the field has arrays, and no sparse rows; leave ToDense out")
	}
	in.Content, in.Ragged, in.Shape, in.Width = "", false, tensor.Shape{in.Width}, 0
	return in, nil
}

// Apply is never called: ToDense is an ArrayRemaker.
func (ToDense) Apply([]float64, int, tensor.Spec) {}

// Remade returns the number of columns.
func (ToDense) Remade(_ int, in tensor.Spec) int { return in.Width }

// Remake scatters the pairs over the columns.
func (ToDense) Remake(dst, src []float64, _ tensor.Spec) error {
	clear(dst)
	for i := 0; i < len(src); i += 2 {
		dst[int(src[i])] += src[i+1]
	}
	return nil
}

// sparse takes a record through the transforms of sparse rows. It returns the remaining pairs, and
// the number of the next transform. Column numbers are checked first: later transforms index tables
// by them, and a stored record is not trusted.
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

// scatter fills a record of float32 with pairs. It replaces ToDense at the end of a pipeline: the
// dense row need not exist in float64 first.
func scatter(dst []byte, pairs []float64) {
	x := tensor.Elements[float32](dst)
	clear(x)
	for i := 0; i < len(pairs); i += 2 {
		x[int(pairs[i])] += float32(pairs[i+1])
	}
}

// Append appends the transformed record to dst, for pipelines whose records have any length.
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
