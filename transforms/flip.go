package transforms

import "fmt"

func init() {
	Register[RandomHorizontalFlip]()
	Register[RandomVerticalFlip]()
	Register[HorizontalFlip]()
	Register[VerticalFlip]()
}

// HorizontalFlip mirrors every image left to right.
type HorizontalFlip struct{}

// Resolve returns t.
func (t HorizontalFlip) Resolve() (Transform, error) { return t, nil }

// Build adds the flip.
func (HorizontalFlip) Build(p *Plan) error {
	p.FlipHorizontal()
	return nil
}

// VerticalFlip turns every image upside down.
type VerticalFlip struct{}

// Resolve returns t.
func (t VerticalFlip) Resolve() (Transform, error) { return t, nil }

// Build adds the flip.
func (VerticalFlip) Build(p *Plan) error {
	p.FlipVertical()
	return nil
}

// RandomHorizontalFlip mirrors an image left to right.
type RandomHorizontalFlip struct {
	P *float64 `json:"p"` // probability; nil means 0.5
}

// Resolve fills in P.
func (t RandomHorizontalFlip) Resolve() (Transform, error) {
	err := resolveP(&t.P, 0.5)
	return t, err
}

// Build draws whether to mirror.
func (t RandomHorizontalFlip) Build(p *Plan) error {
	if p.Rand().Float64() < *t.P {
		p.FlipHorizontal()
	}
	return nil
}

func (RandomHorizontalFlip) Randomized() {}

// RandomVerticalFlip turns an image upside down.
type RandomVerticalFlip struct {
	P *float64 `json:"p"` // probability; nil means 0.5
}

// Resolve fills in P.
func (t RandomVerticalFlip) Resolve() (Transform, error) {
	err := resolveP(&t.P, 0.5)
	return t, err
}

// Build draws whether to mirror.
func (t RandomVerticalFlip) Build(p *Plan) error {
	if p.Rand().Float64() < *t.P {
		p.FlipVertical()
	}
	return nil
}

func (RandomVerticalFlip) Randomized() {}

// resolveP fills in the default of a probability and reports an impossible one.
func resolveP(p **float64, def float64) error {
	fillIn(p, def)
	if !(**p >= 0 && **p <= 1) {
		return fmt.Errorf("p %v must be a probability, 0 to 1", **p)
	}
	return nil
}

// fillIn replaces a parameter that is not given by its default.
func fillIn[T any](p **T, def T) {
	if *p == nil {
		*p = &def
	}
}
