package transforms

import (
	"fmt"
	"image"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/suggest"
)

func init() {
	Register[Fit]()
	Register[Fill]()
	Register[Pad]()
}

// Fit reduces an image that is larger than a box to fit into it, and leaves a smaller image as it
// is: package imaging's Fit with Pillow's filters.
type Fit struct {
	// of the box: one for a square, or height and width
	Size []int `json:"size" is:"box"`
	// as in Resize
	Interpolation string `json:"interpolation" default:"bilinear" is:"filter"`
	// as in Resize
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
}

// resolveBox expands a size of one number to height and width.
func resolveBox(size *[]int) error {
	if err := checkSize(*size); err != nil {
		return err
	}
	*size = []int{(*size)[0], (*size)[len(*size)-1]}
	return nil
}

// Build adds the resize. An image that fits already still goes through p.bytes, so that Fit after a
// conversion to floats is an error for every size.
func (t Fit) Build(p *Plan) error {
	in := p.Info()
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	boxH, boxW := t.Size[0], t.Size[1]
	if in.W <= boxW && in.H <= boxH {
		return p.bytes()
	}
	w, h := boxW, boxH
	if aspect := float64(in.W) / float64(in.H); aspect > float64(boxW)/float64(boxH) {
		h = max(int(float64(w)/aspect), 1)
	} else {
		w = max(int(float64(h)*aspect), 1)
	}
	return resizeBy(p, t.PassOrder, w, h, f)
}

// Fill makes an image exactly a given size without distortion: it cuts off what is too long, at the
// end away from Anchor, and resizes the rest. It is package imaging's Fill with Pillow's filters.
type Fill struct {
	// one for a square, or height and width
	Size []int `json:"size" is:"box"`
	// center, or top, bottom, left, right, top-left, ...
	Anchor string `json:"anchor" default:"center" is:"anchor"`
	// as in Resize
	Interpolation string `json:"interpolation" default:"bilinear" is:"filter"`
	// as in Resize
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
}

var anchors = []string{"center", "top", "bottom", "left", "right", "top-left", "top-right", "bottom-left",
	"bottom-right"}

// Build adds the crop and the resize.
func (t Fill) Build(p *Plan) error {
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	in, h, w := p.Info(), t.Size[0], t.Size[1]
	if err := p.Crop(t.part(in.W, in.H)); err != nil {
		return err
	}
	return resizeBy(p, t.PassOrder, w, h, f)
}

// part returns the part of a w x h image that has the box's aspect, at the Anchor.
func (t Fill) part(w, h int) image.Rectangle {
	boxH, boxW := float64(t.Size[0]), float64(t.Size[1])
	pw, ph := w, h
	if float64(w)/float64(h) < boxW/boxH {
		ph = min(int(math.Max(1, float64(w)*boxH/boxW)+0.5), h)
	} else {
		pw = min(int(math.Max(1, float64(h)*boxW/boxH)+0.5), w)
	}
	x, y := (w-pw)/2, (h-ph)/2
	switch {
	case strings.HasPrefix(t.Anchor, "top"):
		y = 0
	case strings.HasPrefix(t.Anchor, "bottom"):
		y = h - ph
	}
	switch {
	case strings.HasSuffix(t.Anchor, "left"):
		x = 0
	case strings.HasSuffix(t.Anchor, "right"):
		x = w - pw
	}
	return image.Rect(x, y, x+pw, y+ph)
}

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

// from returns which pixel of a side of n pixels stands at position i, which may be beyond both
// ends. Reflections repeat with a period, so that a border may be wider than the image.
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

// Pad adds a border around an image.
type Pad struct {
	// pixels: all sides; left and right, top and bottom; or left, top, right, bottom
	Padding []int `json:"padding" is:"padding"`
	// with PadConstant: gray, or red, green, blue
	Fill []int `json:"fill" default:"[0]" is:"fill"`
	// the zero value is PadConstant
	Mode PadMode `json:"padding_mode" choices:"constant edge reflect symmetric"`
}

// resolvePadding spells out the pixels of the left, top, right and lower side.
func resolvePadding(v *[]int) error {
	switch n := *v; len(n) {
	case 1:
		*v = []int{n[0], n[0], n[0], n[0]}
	case 2:
		*v = []int{n[0], n[1], n[0], n[1]}
	case 4:
	default:
		return fmt.Errorf("padding %v must be 1, 2 or 4 numbers", n)
	}
	if slices.Min(*v) < 0 || slices.Max(*v) > 1<<20 {
		return fmt.Errorf("padding %v: each must be 0 to %d", *v, 1<<20)
	}
	return nil
}

// Build adds the border.
func (t Pad) Build(p *Plan) error {
	n := t.Padding
	return p.Pad(n[0], n[1], n[2], n[3], t.Mode, fillBytes(t.Fill))
}
