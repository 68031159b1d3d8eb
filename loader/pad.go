package loader

import (
	"fmt"

	"github.com/penstock/penstock/loader/internal/padding"
	"github.com/penstock/penstock/tensor"
)

// Pad is the Transform of a field of variable length to one of Length rows: longer records are cut
// at the end, shorter ones are filled up. Batch.Offsets has the lengths that were stored.
type Pad struct {
	Length int
	Value  float64 // of the elements that are filled in; must be exact in the field's type
}

// Output returns the shape (Length, row shape...).
func (t Pad) Output(in tensor.Spec) (tensor.Spec, error) {
	if !in.Ragged {
		return in, fmt.Errorf("has records of one length, %v; there is nothing to pad", in.Shape)
	}
	if t.Length < 1 {
		return in, fmt.Errorf("Pad to Length %d", t.Length)
	}
	if _, err := padding.Element(in.DType, t.Value); err != nil {
		return in, err
	}
	return tensor.Spec{Name: in.Name, DType: in.DType, Shape: append(tensor.Shape{t.Length}, in.Shape...)}, nil
}

// Worker returns a function without state, which any goroutine could use.
func (t Pad) Worker(in tensor.Spec, _ int) (RecordFunc, error) {
	value, err := padding.Element(in.DType, t.Value)
	return func(dst, src []byte, _ Record) error {
		padding.Fill(dst[copy(dst, src):], value)
		return nil
	}, err
}

// ID returns the name of the Transform with its parameters.
func (t Pad) ID() string { return fmt.Sprintf("pad(%d,%v)", t.Length, t.Value) }
