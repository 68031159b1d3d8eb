package transforms

import (
	"fmt"

	"github.com/penstock/penstock/internal/nearest"
)

func init() { Register[Pad]() }

// PadMode says what stands beyond the edge of an image.
type PadMode uint8

// The modes, as NumPy and torchvision name them, for a row 1 2 3 padded by 2.
const (
	PadConstant  PadMode = iota // F F 1 2 3 F F
	PadEdge                     // 1 1 1 2 3 3 3
	PadReflect                  // 3 2 1 2 3 2 1
	PadSymmetric                // 2 1 1 2 3 3 2
)

var padModes = []string{"constant", "edge", "reflect", "symmetric"}

// String returns the name.
func (m PadMode) String() string {
	if int(m) >= len(padModes) {
		return "invalid"
	}
	return padModes[m]
}

// MarshalText writes the name.
func (m PadMode) MarshalText() ([]byte, error) {
	if int(m) >= len(padModes) {
		return nil, fmt.Errorf("transforms: padding mode %d has no name", uint8(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads the name.
func (m *PadMode) UnmarshalText(b []byte) error {
	for i, name := range padModes {
		if name == string(b) {
			*m = PadMode(i)
			return nil
		}
	}
	return fmt.Errorf("unknown padding mode %q%s", b, nearest.Hint(string(b), padModes))
}

// check reports a border that the mode cannot make of a w x h image.
func (m PadMode) check(w, h int, pads [4]int) error {
	for i, n := range pads {
		side := w
		if i%2 == 1 {
			side = h
		}
		switch {
		case n < 0:
			return fmt.Errorf("padding %v must not be negative; crop instead", pads)
		case m == PadReflect && n >= side, m == PadSymmetric && n > side:
			return fmt.Errorf("padding %d by %s is more than an input of %dx%d pixels has to mirror", n, m, w, h)
		}
	}
	return nil
}

// from returns which pixel of a side of n stands at i, which may lie beyond both ends.
func (m PadMode) from(i, n int) int {
	switch {
	case i >= 0 && i < n:
		return i
	case m == PadEdge:
		return min(max(i, 0), n-1)
	case m == PadReflect && i < 0:
		return -i
	case m == PadReflect:
		return 2*n - 2 - i
	case i < 0:
		return -1 - i
	}
	return 2*n - 1 - i
}

// Pad adds a border.
type Pad struct {
	Padding []int   `json:"padding"`      // pixels: all sides; left and right, top and bottom; or left, top, right, bottom
	Fill    []int   `json:"fill"`         // with PadConstant: gray, or red, green, blue; nil means 0
	Mode    PadMode `json:"padding_mode"` // the zero value is PadConstant
}

// Op returns "Pad".
func (Pad) Op() string { return "Pad" }

// Resolve spells out the four sides and Fill.
func (t Pad) Resolve() (Transform, error) {
	switch n := t.Padding; len(n) {
	case 1:
		t.Padding = []int{n[0], n[0], n[0], n[0]}
	case 2:
		t.Padding = []int{n[0], n[1], n[0], n[1]}
	case 4:
	default:
		return nil, fmt.Errorf("padding %v must be 1, 2 or 4 numbers", n)
	}
	if int(t.Mode) >= len(padModes) {
		return nil, fmt.Errorf("padding mode %d does not exist", t.Mode)
	}
	for _, n := range t.Padding {
		if n < 0 || n > 1<<20 {
			return nil, fmt.Errorf("padding %v: each must be 0 to %d", t.Padding, 1<<20)
		}
	}
	var err error
	t.Fill, err = resolveFill(t.Fill)
	return t, err
}

// Build adds the border.
func (t Pad) Build(p *Plan) error {
	n := t.Padding
	return p.Pad(n[0], n[1], n[2], n[3], t.Mode, fillBytes(t.Fill))
}
