package transforms

import (
	"fmt"

	"github.com/penstock/penstock/internal/suggest"
)

func init() { Register[Pad]() }

// PadMode says what stands beyond the edge of an image.
type PadMode uint8

// The modes, as NumPy and torchvision name them, for a row 1 2 3 padded by 2.
const (
	PadConstant  PadMode = iota // F F 1 2 3 F F
	PadEdge                     // 1 1 1 2 3 3 3
	PadReflect                  // 3 2 1 2 3 2 1, and 1 2 3 2 1 2 3 2 1 2 3 by 4
	PadSymmetric                // 2 1 1 2 3 3 2, and 3 3 2 1 1 2 3 3 2 1 1 by 4
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
	return fmt.Errorf("unknown padding mode %q%s", b, suggest.Hint(string(b), padModes))
}

// from returns which pixel of a side of n stands at i, which may be beyond both ends.
func (m PadMode) from(i, n int) int {
	switch {
	case i >= 0 && i < n:
		return i
	case m == PadEdge || n == 1:
		return min(max(i, 0), n-1)
	}
	period, edge := 2*n, 1 // the image and its mirror image, by turns
	if m == PadReflect {
		period, edge = 2*n-2, 0 // which share the pixels at their ends
	}
	if i %= period; i < 0 {
		i += period
	}
	return min(i, period-edge-i)
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
