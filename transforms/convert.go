package transforms

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

func init() {
	Register[ToLayout]()
	Register[ConvertDType]()
	Register[Normalize]()
	Register[Grayscale]()
	Register[RGB]()
	Register[LinearTransformation]()
}

// ToLayout sets the order of the record's axes. Its place in the pipeline does not matter: other
// transforms speak of rows and columns whatever the layout, and the last pass writes the record in
// its final order.
type ToLayout struct {
	Layout Layout `json:"layout"`
}

// Resolve checks Layout.
func (t ToLayout) Resolve() (Transform, error) {
	if t.Layout > CHW {
		return nil, fmt.Errorf("layout %d does not exist", t.Layout)
	}
	return t, nil
}

// Build sets the layout.
func (t ToLayout) Build(p *Plan) error {
	p.SetLayout(t.Layout)
	return nil
}

// ConvertDType converts each byte x to x/255, or to x with NoScale. It divides, as torchvision's
// ToTensor does, bit for bit. torchvision's ToDtype multiplies by 1/255 instead, which rounds the
// last bit differently for half of all x.
//
// All arithmetic, in Normalize too, is float32; float16 and bfloat16 are rounded once, at the end,
// to nearest even.
type ConvertDType struct {
	// Uint8 (which does nothing), Float16, BFloat16 or Float32
	DType tensor.DType `json:"dtype" choices:"uint8 float16 bfloat16 float32"`
	// keep 0 to 255
	NoScale bool `json:"no_scale"`
}

// Build adds the conversion.
func (t ConvertDType) Build(p *Plan) error { return p.convert(t.DType, scaling(!t.NoScale)) }

// Normalize computes (x - Mean) / Std for each channel, bit for bit as torchvision does.
type Normalize struct {
	Mean []float64 `json:"mean"` // one for each channel, or one for all; in units of what ConvertDType made
	Std  []float64 `json:"std"`  // as many
}

// Resolve checks that means and deviations are finite and the deviations positive. A deviation is
// checked as float32, in which a very small one would become 0.
func (t Normalize) Resolve() (Transform, error) {
	if len(t.Mean) != len(t.Std) || (len(t.Mean) != 1 && len(t.Mean) != 3) {
		return nil, fmt.Errorf("%d means and %d deviations; must be 1 or 3 of both", len(t.Mean), len(t.Std))
	}
	for i := range t.Mean {
		if m := t.Mean[i]; math.IsNaN(m) || math.IsInf(m, 0) {
			return nil, errors.New("a mean is not a finite number")
		}
		if s := t.Std[i]; !(float32(s) > 0) || math.IsInf(s, 0) {
			return nil, fmt.Errorf("deviation %v must be a positive number", s)
		}
	}
	return t, nil
}

// Build adds the normalization.
func (t Normalize) Build(p *Plan) error { return p.Normalize(t.Mean, t.Std) }

// Grayscale makes an image gray, as Pillow's convert("L") does.
type Grayscale struct {
	Channels *int `json:"num_output_channels" default:"1" choices:"1 3"` // 1, or 3 with all alike
}

// Build adds the conversion.
func (t Grayscale) Build(p *Plan) error { return p.Gray(*t.Channels) }

// RGB gives a gray image three channels and leaves others alone.
type RGB struct{}

// Build adds the conversion.
func (RGB) Build(p *Plan) error { return p.Channels(3) }

// LinearTransformation multiplies the finished record by a matrix, as torchvision's whitening does.
// It comes last and works on float32. The record minus Mean is one row of numbers, in the order of
// its layout; torchvision's order is CHW. Sums are float64 and rounded once, where torch sums in
// float32. A recipe contains the whole matrix, and so does a dataset's manifest.
type LinearTransformation struct {
	Matrix [][]float64 `json:"transformation_matrix"` // rows, as many as the record has numbers, each as long
	Mean   []float64   `json:"mean_vector"`           // as long
}

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

// multiply applies the plan's matrix to the record, if the plan has one. It goes through the matrix
// row by row, which is the order of its memory.
func (r *Runner) multiply(x []float32) {
	if r.plan.matrix == nil {
		return
	}
	r.sums = pixel.Grow(r.sums, len(x))
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
