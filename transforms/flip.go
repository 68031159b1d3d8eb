package transforms

func init() {
	Register[RandomHorizontalFlip]()
	Register[RandomVerticalFlip]()
	Register[HorizontalFlip]()
	Register[VerticalFlip]()
}

// HorizontalFlip mirrors every image left to right. A flip costs no pass over the pixels: the pass
// that stores the rows reverses them.
type HorizontalFlip struct{}

// Build adds the flip.
func (HorizontalFlip) Build(p *Plan) error {
	p.FlipHorizontal()
	return nil
}

// VerticalFlip turns every image upside down.
type VerticalFlip struct{}

// Build adds the flip.
func (VerticalFlip) Build(p *Plan) error {
	p.FlipVertical()
	return nil
}

// RandomHorizontalFlip mirrors an image left to right.
type RandomHorizontalFlip struct {
	P *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
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
	P *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
}

// Build draws whether to mirror.
func (t RandomVerticalFlip) Build(p *Plan) error {
	if p.Rand().Float64() < *t.P {
		p.FlipVertical()
	}
	return nil
}

func (RandomVerticalFlip) Randomized() {}
