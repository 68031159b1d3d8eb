package transforms

import (
	"errors"
	"fmt"
	"math"
)

func init() { Register[AugMix]() }

// AugMix blends an image with several copies of it that random operations have changed, each
// by a chain of its own (Hendrycks et al. 2019, as in torchvision). The operations are those of
// RandAugment with Pillow's pixels, where torchvision's AugMix takes its tensor kernels.
type AugMix struct {
	Severity      int     `json:"severity"`      // largest strength of an operation, 1 to 10; 0 means 3
	Width         int     `json:"mixture_width"` // chains; 0 means 3
	Depth         int     `json:"chain_depth"`   // operations in a chain; 0 or -1 means 1 to 3, as it happens
	Alpha         float64 `json:"alpha"`         // of the Dirichlet and beta distributions of the shares; 0 means 1
	AllOps        *bool   `json:"all_ops"`       // brightness, color, contrast and sharpness too; nil means true
	Interpolation string  `json:"interpolation"` // nearest, bilinear or bicubic; "" means bilinear
	Fill          []int   `json:"fill"`          // as in Pad; nil means 0
}

// Op returns "AugMix".
func (AugMix) Op() string { return "AugMix" }

// maxChains limits how many copies are mixed, and how many operations each goes through.
const maxChains = 32

// Resolve fills in all.
func (t AugMix) Resolve() (Transform, error) {
	if t.Severity == 0 {
		t.Severity = 3
	}
	if t.Width == 0 {
		t.Width = 3
	}
	if t.Depth == 0 {
		t.Depth = -1
	}
	if t.Alpha == 0 {
		t.Alpha = 1
	}
	if t.AllOps == nil {
		all := true
		t.AllOps = &all
	}
	if t.Interpolation == "" {
		t.Interpolation = "bilinear"
	}
	var errs [6]error
	if t.Severity < 1 || t.Severity > augMixBins {
		errs[0] = fmt.Errorf("severity %d must be 1 to %d", t.Severity, augMixBins)
	}
	if t.Width < 1 || t.Width > maxChains {
		errs[1] = fmt.Errorf("mixture_width %d must be 1 to %d", t.Width, maxChains)
	}
	if t.Depth != -1 && (t.Depth < 1 || t.Depth > maxChains) {
		errs[2] = fmt.Errorf("chain_depth %d must be -1 or 1 to %d", t.Depth, maxChains)
	}
	if !(t.Alpha > 0 && t.Alpha < 1e6) {
		errs[3] = fmt.Errorf("alpha %v must be positive, below 1e6", t.Alpha)
	}
	_, errs[4] = parseWarpFilter(t.Interpolation)
	t.Fill, errs[5] = resolveFill(t.Fill)
	return t, errors.Join(errs[:]...)
}

const augMixBins = 10

// augMixSpace is that of torchvision's class.
var augMixSpace = augmentSpace{shear: 0.3, rotate: 30, color: 0.9, keep: 4, bits: 4,
	moveX: func(w, _ int) float64 { return float64(w) / 3 },
	moveY: func(_, h int) float64 { return float64(h) / 3 }}

// augMixOps are in torchvision's order: the last four are those that AllOps adds.
var augMixOps = []augmentationID{
	shearX, shearY, translateX, translateY, rotateBy, posterizeBits, solarizeAbove, autoContrast, equalizeAll,
	enhanceBrightness, enhanceColor, enhanceContrast, enhanceSharpness,
}

// Build draws the shares, and the chains.
func (t AugMix) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	ops := augMixOps
	if !*t.AllOps {
		ops = ops[:len(ops)-4]
	}
	r := p.Rand()
	var shares [maxChains]float64
	keep := r.Beta(t.Alpha)
	r.dirichlet(shares[:t.Width], t.Alpha)
	if err := p.mix(mixBegin, keep); err != nil {
		return err
	}
	for _, share := range shares[:t.Width] {
		depth := t.Depth
		if depth < 0 {
			depth = 1 + r.IntN(3)
		}
		for range depth {
			op, bin, negative := ops[r.IntN(len(ops))], r.IntN(t.Severity), r.IntN(2) == 1
			if err := p.augmentBy(op, &augMixSpace, bin, augMixBins, negative, f, fillBytes(t.Fill)); err != nil {
				return err
			}
		}
		if err := p.mix(mixAdd, share*(1-keep)); err != nil {
			return err
		}
	}
	return p.mix(mixEnd, 0)
}

// Randomized marks the transform as random.
func (AugMix) Randomized() {}

// mixStep is a call that needs the Runner's mixer.
type mixStep uint8

const (
	_        mixStep = iota
	mixBegin         // keep the image, and begin the sum with a share of it
	mixAdd           // add a share of the image to the sum, and continue with the one that was kept
	mixEnd           // make the image what the sum is
)

// mix adds a step to the image's operations.
func (p *Plan) mix(step mixStep, share float64) error {
	if err := p.change(nil, share); err != nil {
		return err
	}
	p.ops[len(p.ops)-1].mix = step
	return nil
}

// mixer blends images, in float32.
type mixer struct {
	kept Image
	sum  []float32
}

func (x *mixer) do(m *Image, step mixStep, share float32) {
	switch step {
	case mixBegin:
		x.kept.Reshape(m.W, m.H, m.C)
		copy(x.kept.Pix, m.Pix)
		x.sum = grow(x.sum, len(m.Pix))
		for i, v := range m.Pix {
			x.sum[i] = float32(share * float32(v))
		}
	case mixAdd:
		for i, v := range m.Pix {
			x.sum[i] += float32(share * float32(v))
		}
		copy(m.Pix, x.kept.Pix)
	case mixEnd:
		for i, v := range x.sum {
			m.Pix[i] = byte(min(v, 255))
		}
	}
}

// dirichlet fills shares, which add up to 1, from the distribution whose parameters are all a.
func (r *Rand) dirichlet(shares []float64, a float64) {
	most, sum := math.Inf(-1), 0.0
	for i := range shares {
		shares[i] = r.logGamma(a)
		most = max(most, shares[i])
	}
	for i, v := range shares {
		shares[i] = math.Exp(v - most)
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
}
