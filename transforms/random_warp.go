package transforms

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

func init() {
	Register[RandomRotation]()
	Register[RandomAffine]()
}

// RandomRotation turns an image about its center; the size stays, unless Expand.
type RandomRotation struct {
	Degrees       []float64 `json:"degrees"`          // range, counter-clockwise; one number v means -v to v
	Interpolation string    `json:"interpolation"`    // nearest, bilinear or bicubic; "" means nearest
	Expand        bool      `json:"expand,omitempty"` // the image grows, so that nothing is cut off
	Center        []float64 `json:"center,omitempty"` // x and y from the upper left corner; nil means the middle
	Fill          []int     `json:"fill"`             // as in Pad; nil means 0
}

// Resolve spells out all.
func (t RandomRotation) Resolve() (Transform, error) {
	var errs [4]error
	t.Degrees, errs[0] = symmetricRange("degrees", t.Degrees)
	t.Interpolation, errs[1] = resolveWarpFilter(t.Interpolation)
	t.Fill, errs[2] = resolveFill(t.Fill)
	errs[3] = checkCenter(t.Center)
	if t.Expand && t.Center != nil {
		errs[3] = errors.New("expand turns about the middle; leave center out")
	}
	return t, errors.Join(errs[:]...)
}

// checkCenter reports a center of a warp that is none.
func checkCenter(c []float64) error {
	for _, v := range c {
		if math.IsNaN(v) || math.Abs(v) > 1<<20 {
			return fmt.Errorf("center %v must be two numbers of pixels", c)
		}
	}
	if c != nil && len(c) != 2 {
		return fmt.Errorf("center %v must be two numbers of pixels", c)
	}
	return nil
}

// centerOr returns a center, or the middle of w x h pixels.
func centerOr(c []float64, w, h int) (x, y float64) {
	if c == nil {
		return float64(w) * 0.5, float64(h) * 0.5
	}
	return c[0], c[1]
}

// Build draws the angle.
func (t RandomRotation) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	angle := p.Rand().Between(t.Degrees[0], t.Degrees[1])
	if t.Expand {
		return addExpandedRotation(p, angle, f, fillBytes(t.Fill))
	}
	x, y := centerOr(t.Center, p.Info().W, p.Info().H)
	return addRotation(p, angle, x, y, f, fillBytes(t.Fill))
}

func (RandomRotation) Randomized() {}

// symmetricRange returns the range that r means.
func symmetricRange(name string, r []float64) ([]float64, error) {
	if len(r) == 1 && r[0] >= 0 {
		r = []float64{-r[0], r[0]}
	}
	if len(r) != 2 || !(r[0] <= r[1]) || math.IsInf(r[1]-r[0], 0) {
		return r, fmt.Errorf("%s %v must be one number that is not negative, or a range", name, r)
	}
	return r, nil
}

func resolveWarpFilter(name string) (string, error) {
	if name == "" {
		name = kernel.Nearest.String()
	}
	_, err := parseWarpFilter(name)
	return name, err
}

// RandomAffine rotates, moves, scales and shears an image about its center. Sines and cosines
// are Go's, whose last bit is not always that of the C library: with a smooth filter, one image
// in a hundred or two has a byte or two that are one level away from torchvision's.
type RandomAffine struct {
	Degrees   []float64 `json:"degrees"`   // range of the rotation, clockwise; one number v means -v to v
	Translate []float64 `json:"translate"` // most that it moves, as shares of width and height; nil means 0, 0
	Scale     []float64 `json:"scale"`     // range of the factor; nil means 1, 1
	// degrees: v means x by -v to v; two are x's range; four x's and y's; nil means none
	Shear         []float64 `json:"shear"`
	Interpolation string    `json:"interpolation"`    // nearest, bilinear or bicubic; "" means nearest
	Fill          []int     `json:"fill"`             // as in Pad; nil means 0
	Center        []float64 `json:"center,omitempty"` // x and y from the upper left corner; nil means the middle
}

// Resolve spells out all.
func (t RandomAffine) Resolve() (Transform, error) {
	var errs [7]error
	t.Degrees, errs[0] = symmetricRange("degrees", t.Degrees)
	if t.Translate == nil {
		t.Translate = []float64{0, 0}
	}
	if len(t.Translate) != 2 || !(min(t.Translate[0], t.Translate[1]) >= 0 && max(t.Translate[0], t.Translate[1]) <= 1) {
		errs[1] = fmt.Errorf("translate %v must be two shares, 0 to 1", t.Translate)
	}
	if t.Scale == nil {
		t.Scale = []float64{1, 1}
	}
	errs[2] = checkRange("scale", t.Scale, math.MaxFloat32)
	t.Shear, errs[3] = resolveShear(t.Shear)
	t.Interpolation, errs[4] = resolveWarpFilter(t.Interpolation)
	t.Fill, errs[5] = resolveFill(t.Fill)
	errs[6] = checkCenter(t.Center)
	return t, errors.Join(errs[:]...)
}

func resolveShear(s []float64) ([]float64, error) {
	switch len(s) {
	case 0:
		return []float64{0, 0, 0, 0}, nil
	case 1, 2:
		x, err := symmetricRange("shear", s)
		return append(x, 0, 0), err
	case 4:
		_, errX := symmetricRange("shear", s[:2])
		_, errY := symmetricRange("shear", s[2:])
		return s, errors.Join(errX, errY)
	}
	return s, fmt.Errorf("shear %v must be 1, 2 or 4 numbers", s)
}

// Build draws all factors.
func (t RandomAffine) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	in, r := p.Info(), p.Rand()
	w, h := float64(in.W), float64(in.H)
	angle := r.Between(t.Degrees[0], t.Degrees[1])
	dx, dy := float64(t.Translate[0]*w), float64(t.Translate[1]*h)
	tx := math.RoundToEven(r.Between(-dx, dx))
	ty := math.RoundToEven(r.Between(-dy, dy))
	scale := r.Between(t.Scale[0], t.Scale[1])
	sx, sy := r.Between(t.Shear[0], t.Shear[1]), r.Between(t.Shear[2], t.Shear[3])
	cx, cy := centerOr(t.Center, in.W, in.H)
	return addCentered(p, warp(angle, tx, ty, scale, sx, sy, cx, cy),
		warp(angle, tx, ty, scale, sx, sy, cx-w*0.5, cy-h*0.5), f, fillBytes(t.Fill))
}

func (RandomAffine) Randomized() {}
