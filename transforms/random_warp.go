package transforms

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

func init() {
	Register[RandomRotation]()
	Register[RandomAffine]()
}

// RandomRotation turns an image about its center. The size stays the same, unless Expand is set.
type RandomRotation struct {
	Degrees       []float64 `json:"degrees" is:"degrees"` // range, counter-clockwise; one number v means -v to v
	Interpolation string    `json:"interpolation" default:"nearest" choices:"nearest bilinear bicubic"`
	Expand        bool      `json:"expand,omitempty"`             // the image grows, so that nothing is cut off
	Center        []float64 `json:"center,omitempty" is:"center"` // x and y from the upper left corner
	Fill          []int     `json:"fill" default:"[0]" is:"fill"` // as in Pad
}

// Resolve refuses Center together with Expand: the enlarged image is always centered.
func (t RandomRotation) Resolve() (Transform, error) {
	if t.Expand && t.Center != nil {
		return nil, errors.New("expand turns about the middle; leave center out")
	}
	return t, nil
}

// checkCenter returns an error unless c is nil or two finite numbers.
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

// centerOr returns the center c, or the middle of w x h pixels if c is nil.
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

// resolveSymmetric expands one number v to the range from -v to v.
func resolveSymmetric(name string, v *[]float64) error {
	r := *v
	if len(r) == 1 && r[0] >= 0 {
		r = []float64{-r[0], r[0]}
	}
	if len(r) != 2 || !(r[0] <= r[1]) || math.IsInf(r[1]-r[0], 0) {
		return fmt.Errorf("%s %v must be one number that is not negative, or a range", name, r)
	}
	*v = r
	return nil
}

// RandomAffine rotates, moves, scales and shears an image about its center. Sines and cosines
// are Go's, whose last bit may differ from the C library's: with a smooth filter, one image
// in a hundred or two has a byte or two that are one level away from torchvision's.
type RandomAffine struct {
	// range of the rotation, clockwise; one number v means -v to v
	Degrees []float64 `json:"degrees" is:"degrees"`
	// most that it moves, as shares of width and height
	Translate []float64 `json:"translate" default:"[0,0]" is:"shares"`
	// range of the factor
	Scale []float64 `json:"scale" default:"[1,1]" is:"range 3e38"`
	// degrees: v means x by -v to v; two are x's range; four x's and y's; nil means none
	Shear         []float64 `json:"shear" default:"[0,0,0,0]" is:"shear"`
	Interpolation string    `json:"interpolation" default:"nearest" choices:"nearest bilinear bicubic"`
	// as in Pad
	Fill []int `json:"fill" default:"[0]" is:"fill"`
	// x and y from the upper left corner
	Center []float64 `json:"center,omitempty" is:"center"`
}

// checkTwoShares reports what is not two shares of a whole.
func checkTwoShares(name string, v []float64) error {
	if len(v) != 2 || !(slices.Min(v) >= 0 && slices.Max(v) <= 1) {
		return fmt.Errorf("%s %v must be two shares, 0 to 1", name, v)
	}
	return nil
}

// resolveShear expands Shear to four numbers: the ranges across and down.
func resolveShear(v *[]float64) error {
	switch s := *v; len(s) {
	case 1, 2:
		err := resolveSymmetric("shear", &s)
		*v = append(slices.Clip(s), 0, 0)
		return err
	case 4:
		x, y := s[:2], s[2:]
		return errors.Join(resolveSymmetric("shear", &x), resolveSymmetric("shear", &y))
	}
	return fmt.Errorf("shear %v must be 1, 2 or 4 numbers", *v)
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
