package transforms

import "fmt"

func init() {
	Register[Grayscale]()
	Register[RGB]()
}

// Grayscale makes an image gray, as Pillow's convert("L") does.
type Grayscale struct {
	Channels int `json:"num_output_channels"` // 1, or 3 with all alike; 0 means 1
}

// Op returns "Grayscale".
func (Grayscale) Op() string { return "Grayscale" }

// Resolve fills in Channels.
func (t Grayscale) Resolve() (Transform, error) {
	if t.Channels == 0 {
		t.Channels = 1
	}
	if t.Channels != 1 && t.Channels != 3 {
		return nil, fmt.Errorf("num_output_channels %d must be 1 or 3", t.Channels)
	}
	return t, nil
}

// Build adds the conversion.
func (t Grayscale) Build(p *Plan) error { return p.Color(true, t.Channels) }

// RGB gives a gray image three channels and leaves others alone.
type RGB struct{}

// Op returns "RGB".
func (RGB) Op() string { return "RGB" }

// Resolve returns t.
func (t RGB) Resolve() (Transform, error) { return t, nil }

// Build adds the conversion.
func (RGB) Build(p *Plan) error { return p.Color(false, 3) }
