package field

import (
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Moments accumulates mean and deviation of a field, for each position on an axis. Values that are not finite do
// not count. It takes 64 bytes for each position and 8 for each element of a record.
type Moments struct {
	At          int // position of the field in the schema
	spec        tensor.Spec
	axis, inner int
	sums        []moments.Moments
	x           []float64
}

// newMoments returns the accumulator of the field at position at.
func newMoments(at int, s tensor.Spec, want NormalizedField) *Moments {
	n, axis, inner := spread(s, want)
	return &Moments{At: at, spec: s, axis: axis, inner: inner, sums: make([]moments.Moments, n)}
}

// Add adds a record, or all rows of a ragged one.
func (f *Moments) Add(record []byte) {
	f.x = tensor.AppendFloats(f.x[:0], f.spec.DType, record)
	for place, x := 0, f.x; len(x) > 0; place, x = (place+1)%len(f.sums), x[f.inner:] {
		f.sums[place].Merge(moments.InOrder(x[:f.inner]))
	}
}

// Transform returns the transform to mean 0 and deviation 1. A position with only one value is shifted and not
// scaled.
func (f *Moments) Transform() transforms.Standardize {
	t := transforms.Standardize{Axis: f.axis}
	for _, s := range f.sums {
		std := 1.0
		if s.M2 > 0 {
			std = s.Std()
		}
		t.Mean, t.Std = append(t.Mean, s.Mean), append(t.Std, std)
	}
	return t
}
