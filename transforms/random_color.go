package transforms

import (
	"errors"
	"fmt"
	"math"
)

func init() {
	Register[ColorJitter]()
	Register[RandomGrayscale]()
	Register[RandomInvert]()
	Register[RandomPosterize]()
	Register[RandomSolarize]()
	Register[RandomAdjustSharpness]()
	Register[RandomAutocontrast]()
	Register[RandomEqualize]()
}

// ColorJitter changes brightness, contrast, saturation and hue by random factors, in random
// order. Each is the range [lo, hi] of its factor; one number v means [max(0, 1-v), 1+v], for
// Hue [-v, v]; nil changes nothing.
type ColorJitter struct {
	Brightness []float64 `json:"brightness"` // 1 leaves the image as it is
	Contrast   []float64 `json:"contrast"`   // 1 leaves the image as it is
	Saturation []float64 `json:"saturation"` // 1 leaves the image as it is
	Hue        []float64 `json:"hue"`        // turns of the color circle, within -0.5 to 0.5
}

// Resolve expands each parameter to a range.
func (t ColorJitter) Resolve() (Transform, error) {
	var errs [4]error
	t.Brightness, errs[0] = jitterRange("brightness", t.Brightness, 1, 0, math.Inf(1))
	t.Contrast, errs[1] = jitterRange("contrast", t.Contrast, 1, 0, math.Inf(1))
	t.Saturation, errs[2] = jitterRange("saturation", t.Saturation, 1, 0, math.Inf(1))
	t.Hue, errs[3] = jitterRange("hue", t.Hue, 0, -0.5, 0.5)
	return t, errors.Join(errs[:]...)
}

// jitterRange expands r to a range of factors around center, within least and most.
func jitterRange(name string, r []float64, center, least, most float64) ([]float64, error) {
	switch len(r) {
	case 0:
		return []float64{center, center}, nil
	case 1:
		if !(r[0] >= 0) {
			return r, fmt.Errorf("%s %v must not be negative", name, r[0])
		}
		r = []float64{max(center-r[0], min(least, center)), center + r[0]}
		if center == 0 {
			r[0] = -r[1]
		}
	case 2:
	default:
		return r, fmt.Errorf("%s %v must be one number or two", name, r)
	}
	if !(r[0] >= least && r[1] <= most && r[0] <= r[1]) || math.IsInf(r[1], 0) {
		return r, fmt.Errorf("%s %v must be a range within %v to %v", name, r, least, most)
	}
	return r, nil
}

// Build draws the order and the factors. A factor that cannot change anything is neither drawn nor
// applied, since an operation costs a pass over the image.
func (t ColorJitter) Build(p *Plan) error {
	ops := [4]ImageOp{brightness, contrast, saturation, hue}
	ranges := [4][]float64{t.Brightness, t.Contrast, t.Saturation, t.Hue}
	neutral := [4]float64{1, 1, 1, 0}
	order := [4]int{0, 1, 2, 3}
	p.Rand().Shuffle(order[:])
	for _, i := range order {
		if r := ranges[i]; r[0] != neutral[i] || r[1] != neutral[i] {
			if err := addChange(p, ops[i], p.Rand().Between(r[0], r[1])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ColorJitter) Randomized() {}

// addChange adds an operation that changes colors and moves no pixel.
func addChange(p *Plan, op ImageOp, args ...float64) error {
	return p.Recolor(op, args...)
}

// maybeChange adds an operation with probability prob. The type of the input is checked either way:
// an error must not depend on a draw.
func maybeChange(p *Plan, prob float64, op ImageOp, args ...float64) error {
	if p.rnd.Float64() >= prob {
		return p.bytes()
	}
	return addChange(p, op, args...)
}

// RandomGrayscale makes an image gray with probability P. The image keeps its number of channels,
// because a batch has one shape.
type RandomGrayscale struct {
	P *float64 `json:"p" default:"0.1" in:"[0,1]"` // probability
}

// Build draws whether to make the image gray.
func (t RandomGrayscale) Build(p *Plan) error {
	if p.Rand().Float64() >= *t.P {
		return p.bytes()
	}
	return p.Gray(p.Info().C)
}

func (RandomGrayscale) Randomized() {}

// RandomInvert inverts all levels of an image with probability P.
type RandomInvert struct {
	P *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
}

// Build draws whether to invert the image.
func (t RandomInvert) Build(p *Plan) error { return maybeChange(p, *t.P, invert) }

func (RandomInvert) Randomized() {}

// RandomPosterize keeps the upper bits of each byte with probability P.
type RandomPosterize struct {
	Bits int      `json:"bits" in:"[1,8]"`
	P    *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
}

// Build draws whether to posterize the image.
func (t RandomPosterize) Build(p *Plan) error {
	return maybeChange(p, *t.P, posterize, float64(t.Bits))
}

func (RandomPosterize) Randomized() {}

// RandomSolarize inverts levels from Threshold upwards with probability P.
type RandomSolarize struct {
	Threshold float64  `json:"threshold" in:"[0,255]"`
	P         *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
}

// Build draws whether to solarize the image.
func (t RandomSolarize) Build(p *Plan) error { return maybeChange(p, *t.P, solarize, t.Threshold) }

func (RandomSolarize) Randomized() {}

// RandomAdjustSharpness blurs or sharpens an image with probability P.
type RandomAdjustSharpness struct {
	Factor float64  `json:"sharpness_factor" in:"[0,inf)"` // 0 is blurred, 1 as it is, 2 twice as sharp
	P      *float64 `json:"p" default:"0.5" in:"[0,1]"`    // probability
}

// Build draws whether to adjust the sharpness.
func (t RandomAdjustSharpness) Build(p *Plan) error { return maybeChange(p, *t.P, sharpness, t.Factor) }

func (RandomAdjustSharpness) Randomized() {}

// RandomAutocontrast stretches each channel to the whole range of levels with probability P.
type RandomAutocontrast struct {
	P *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
}

// Build draws whether to stretch the contrast.
func (t RandomAutocontrast) Build(p *Plan) error { return maybeChange(p, *t.P, autocontrast) }

func (RandomAutocontrast) Randomized() {}

// RandomEqualize makes the histogram of each channel nearly flat with probability P.
type RandomEqualize struct {
	P *float64 `json:"p" default:"0.5" in:"[0,1]"` // probability
}

// Build draws whether to equalize the image.
func (t RandomEqualize) Build(p *Plan) error { return maybeChange(p, *t.P, equalize) }

func (RandomEqualize) Randomized() {}
