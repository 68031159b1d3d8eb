package transforms

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/tensor"
)

func init() { Register[LinearTransformation]() }

// LinearTransformation multiplies the finished record by a matrix, as whitening does:
// torchvision's. It comes last, on float32. The record is the row of its numbers, in the order
// of its layout (torchvision's is CHW), less Mean. The sums are float64, rounded once, where
// torch's are float32. A recipe holds all of the matrix, and so does a dataset's manifest.
type LinearTransformation struct {
	Matrix [][]float64 `json:"transformation_matrix"` // rows, as many as the record has numbers, each as long
	Mean   []float64   `json:"mean_vector"`           // as long
}

// Op returns "LinearTransformation".
func (LinearTransformation) Op() string { return "LinearTransformation" }

// Resolve checks that the matrix is square and finite.
func (t LinearTransformation) Resolve() (Transform, error) {
	n := len(t.Mean)
	if n == 0 || len(t.Matrix) != n {
		return nil, fmt.Errorf("matrix of %d rows for a mean of %d numbers; must be as many, at least 1", len(t.Matrix), n)
	}
	for i, row := range append([][]float64{t.Mean}, t.Matrix...) {
		if len(row) != n {
			return nil, fmt.Errorf("row %d of the matrix has %d numbers, want %d", i-1, len(row), n)
		}
		for _, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, errors.New("a number of the matrix or the mean is not finite")
			}
		}
	}
	return t, nil
}

// Build adds the multiplication.
func (t LinearTransformation) Build(p *Plan) error {
	if p.info.DType != tensor.Float32 {
		return fmt.Errorf("input is %v; put ConvertDType to float32 before it", p.info.DType)
	}
	if n := p.info.W * p.info.H * p.info.C; n != len(t.Mean) {
		return fmt.Errorf("matrix of %d rows for an input %v of %d numbers", len(t.Mean), p.info, n)
	}
	p.matrix, p.mean = t.Matrix, t.Mean
	return nil
}

var errMultiplied = errors.New("input is multiplied by a matrix already; LinearTransformation comes last")

// multiply applies the plan's matrix, if it has one, to the record.
func (r *Runner) multiply(x []float32) {
	if r.plan.matrix == nil {
		return
	}
	r.sums = grow(r.sums, len(x))
	clear(r.sums)
	for i, row := range r.plan.matrix {
		v := float64(x[i] - float32(r.plan.mean[i]))
		for j, m := range row[:len(r.sums)] {
			r.sums[j] += float64(v * m)
		}
	}
	for i, v := range r.sums {
		x[i] = float32(v)
	}
}
