package transforms

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/tensor"
)

func init() {
	Register[ToLayout]()
	Register[ConvertDType]()
	Register[Normalize]()
}

// ToLayout orders the axes of the record. It may stand anywhere: other transforms speak of
// rows and columns whatever the layout.
type ToLayout struct {
	Layout Layout `json:"layout"`
}

// Op returns "ToLayout".
func (ToLayout) Op() string { return "ToLayout" }

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

// ConvertDType makes the bytes x numbers x/255, or x with NoScale. It divides, as torchvision's
// ToTensor does, bit for bit; torchvision's ToDtype multiplies by 1/255, whose last bit is
// another for half of all x.
//
// All arithmetic, that of Normalize included, is float32; float16 and bfloat16 are rounded
// once, at the end, to the nearest, halves to even.
type ConvertDType struct {
	DType   tensor.DType `json:"dtype"`    // Uint8 (which does nothing), Float16, BFloat16 or Float32
	NoScale bool         `json:"no_scale"` // keep 0 to 255
}

// Op returns "ConvertDType".
func (ConvertDType) Op() string { return "ConvertDType" }

// Resolve checks DType.
func (t ConvertDType) Resolve() (Transform, error) {
	switch t.DType {
	case tensor.Uint8, tensor.Float16, tensor.BFloat16, tensor.Float32:
		return t, nil
	}
	return nil, fmt.Errorf("dtype %v is not one of uint8, float16, bfloat16, float32", t.DType)
}

// Build adds the conversion.
func (t ConvertDType) Build(p *Plan) error { return p.Convert(t.DType, !t.NoScale) }

// Normalize is torchvision's: (x - Mean) / Std for each channel, bit for bit.
type Normalize struct {
	Mean []float64 `json:"mean"` // one for each channel, or one for all; in units of what ConvertDType made
	Std  []float64 `json:"std"`  // as many
}

// Op returns "Normalize".
func (Normalize) Op() string { return "Normalize" }

// Resolve checks the numbers.
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
