package transforms

import "github.com/penstock/penstock/tensor"

func init() {
	Register[ToTensor]()
	Register[PILToTensor]()
	Register[ToImage]()
	Register[ToDtype]()
	Register[ConvertImageDtype]()
}

// The transforms of this file are torchvision's names for ToLayout and ConvertDType, which they
// become in a Pipeline and in what it writes. ToTensor alone is both.

// ToTensor makes the record CHW, and float32 between 0 and 1: bit for bit what torchvision's
// makes of an image of bytes.
type ToTensor struct{}

// Op returns "ToTensor".
func (ToTensor) Op() string { return "ToTensor" }

// Resolve returns t.
func (t ToTensor) Resolve() (Transform, error) { return t, nil }

// Build sets the layout and adds the conversion.
func (ToTensor) Build(p *Plan) error {
	p.SetLayout(CHW)
	return p.Convert(tensor.Float32, true)
}

// PILToTensor is ToLayout to CHW.
type PILToTensor struct{}

// Op returns "PILToTensor".
func (PILToTensor) Op() string { return "PILToTensor" }

// Resolve returns a ToLayout.
func (PILToTensor) Resolve() (Transform, error) { return ToLayout{CHW}, nil }

// Build sets the layout.
func (PILToTensor) Build(p *Plan) error { return ToLayout{CHW}.Build(p) }

// ToImage is ToLayout to CHW.
type ToImage struct{}

// Op returns "ToImage".
func (ToImage) Op() string { return "ToImage" }

// Resolve returns a ToLayout.
func (ToImage) Resolve() (Transform, error) { return ToLayout{CHW}, nil }

// Build sets the layout.
func (ToImage) Build(p *Plan) error { return ToLayout{CHW}.Build(p) }

// ToDtype is ConvertDType that scales only if Scale is true.
type ToDtype struct {
	DType tensor.DType `json:"dtype"` // as in ConvertDType
	Scale bool         `json:"scale"` // divide by 255
}

// Op returns "ToDtype".
func (ToDtype) Op() string { return "ToDtype" }

// Resolve returns a ConvertDType.
func (t ToDtype) Resolve() (Transform, error) {
	return ConvertDType{DType: t.DType, NoScale: !t.Scale}.Resolve()
}

// Build adds the conversion.
func (t ToDtype) Build(p *Plan) error { return p.Convert(t.DType, t.Scale) }

// ConvertImageDtype is ConvertDType.
type ConvertImageDtype struct {
	DType tensor.DType `json:"dtype"` // as in ConvertDType; Invalid means Float32
}

// Op returns "ConvertImageDtype".
func (ConvertImageDtype) Op() string { return "ConvertImageDtype" }

// Resolve returns a ConvertDType.
func (t ConvertImageDtype) Resolve() (Transform, error) {
	if t.DType == tensor.Invalid {
		t.DType = tensor.Float32
	}
	return ConvertDType{DType: t.DType}.Resolve()
}

// Build adds the conversion.
func (t ConvertImageDtype) Build(p *Plan) error { return p.Convert(t.DType, true) }
