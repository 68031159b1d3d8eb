package transforms

import (
	"math"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
)

func init() {
	Register[AutoAugment]()
	Register[AugMix]()
}

// AutoAugment applies one of 25 pairs of operations that were found to help on a dataset, each
// with a probability and strength of its own (Cubuk et al. 2018, as in torchvision).
type AutoAugment struct {
	Policy        string `json:"policy" default:"imagenet" choices:"cifar10 imagenet svhn"`
	Interpolation string `json:"interpolation" default:"nearest" choices:"nearest bilinear bicubic"`
	Fill          []int  `json:"fill" default:"[0]" is:"fill"` // as in Pad
}

// Build draws the pair, and for each operation whether it happens and its direction. Both numbers
// are drawn even for an operation that does not happen: the stream then has the same position after
// any outcome.
func (t AutoAugment) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	r := p.Rand()
	pair := policies[t.Policy][r.IntN(25)]
	for i := range pair {
		happens, negative := r.Float64() <= pair[i].p, r.IntN(2) == 0
		if !happens {
			err = p.bytes()
		} else {
			err = addPolicyStep(p, pair[i], negative, f, fillBytes(t.Fill))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (AutoAugment) Randomized() {}

// policyStep is one operation of a pair, with its probability and strength.
type policyStep struct {
	op  augmentationID
	p   float64 // probability
	bin int     // of ten
}

func addPolicyStep(p *Plan, s policyStep, negative bool, f kernel.Filter, fill [3]byte) error {
	if s.op == invertAll {
		return addChange(p, invert)
	}
	return augmentBy(p, s.op, &randAugmentSpace, s.bin, 10, negative, f, fill)
}

// policies are the pairs of torchvision's AutoAugment, in torchvision's order, which the draw
// depends on.
var policies = map[string][25][2]policyStep{
	"imagenet": {
		{{posterizeBits, 0.4, 8}, {rotateBy, 0.6, 9}},
		{{solarizeAbove, 0.6, 5}, {autoContrast, 0.6, 0}},
		{{equalizeAll, 0.8, 0}, {equalizeAll, 0.6, 0}},
		{{posterizeBits, 0.6, 7}, {posterizeBits, 0.6, 6}},
		{{equalizeAll, 0.4, 0}, {solarizeAbove, 0.2, 4}},
		{{equalizeAll, 0.4, 0}, {rotateBy, 0.8, 8}},
		{{solarizeAbove, 0.6, 3}, {equalizeAll, 0.6, 0}},
		{{posterizeBits, 0.8, 5}, {equalizeAll, 1, 0}},
		{{rotateBy, 0.2, 3}, {solarizeAbove, 0.6, 8}},
		{{equalizeAll, 0.6, 0}, {posterizeBits, 0.4, 6}},
		{{rotateBy, 0.8, 8}, {enhanceColor, 0.4, 0}},
		{{rotateBy, 0.4, 9}, {equalizeAll, 0.6, 0}},
		{{equalizeAll, 0, 0}, {equalizeAll, 0.8, 0}},
		{{invertAll, 0.6, 0}, {equalizeAll, 1, 0}},
		{{enhanceColor, 0.6, 4}, {enhanceContrast, 1, 8}},
		{{rotateBy, 0.8, 8}, {enhanceColor, 1, 2}},
		{{enhanceColor, 0.8, 8}, {solarizeAbove, 0.8, 7}},
		{{enhanceSharpness, 0.4, 7}, {invertAll, 0.6, 0}},
		{{shearX, 0.6, 5}, {equalizeAll, 1, 0}},
		{{enhanceColor, 0.4, 0}, {equalizeAll, 0.6, 0}},
		{{equalizeAll, 0.4, 0}, {solarizeAbove, 0.2, 4}},
		{{solarizeAbove, 0.6, 5}, {autoContrast, 0.6, 0}},
		{{invertAll, 0.6, 0}, {equalizeAll, 1, 0}},
		{{enhanceColor, 0.6, 4}, {enhanceContrast, 1, 8}},
		{{equalizeAll, 0.8, 0}, {equalizeAll, 0.6, 0}},
	},
	"cifar10": {
		{{invertAll, 0.1, 0}, {enhanceContrast, 0.2, 6}},
		{{rotateBy, 0.7, 2}, {translateX, 0.3, 9}},
		{{enhanceSharpness, 0.8, 1}, {enhanceSharpness, 0.9, 3}},
		{{shearY, 0.5, 8}, {translateY, 0.7, 9}},
		{{autoContrast, 0.5, 0}, {equalizeAll, 0.9, 0}},
		{{shearY, 0.2, 7}, {posterizeBits, 0.3, 7}},
		{{enhanceColor, 0.4, 3}, {enhanceBrightness, 0.6, 7}},
		{{enhanceSharpness, 0.3, 9}, {enhanceBrightness, 0.7, 9}},
		{{equalizeAll, 0.6, 0}, {equalizeAll, 0.5, 0}},
		{{enhanceContrast, 0.6, 7}, {enhanceSharpness, 0.6, 5}},
		{{enhanceColor, 0.7, 7}, {translateX, 0.5, 8}},
		{{equalizeAll, 0.3, 0}, {autoContrast, 0.4, 0}},
		{{translateY, 0.4, 3}, {enhanceSharpness, 0.2, 6}},
		{{enhanceBrightness, 0.9, 6}, {enhanceColor, 0.2, 8}},
		{{solarizeAbove, 0.5, 2}, {invertAll, 0, 0}},
		{{equalizeAll, 0.2, 0}, {autoContrast, 0.6, 0}},
		{{equalizeAll, 0.2, 0}, {equalizeAll, 0.6, 0}},
		{{enhanceColor, 0.9, 9}, {equalizeAll, 0.6, 0}},
		{{autoContrast, 0.8, 0}, {solarizeAbove, 0.2, 8}},
		{{enhanceBrightness, 0.1, 3}, {enhanceColor, 0.7, 0}},
		{{solarizeAbove, 0.4, 5}, {autoContrast, 0.9, 0}},
		{{translateY, 0.9, 9}, {translateY, 0.7, 9}},
		{{autoContrast, 0.9, 0}, {solarizeAbove, 0.8, 3}},
		{{equalizeAll, 0.8, 0}, {invertAll, 0.1, 0}},
		{{translateY, 0.7, 9}, {autoContrast, 0.9, 0}},
	},
	"svhn": {
		{{shearX, 0.9, 4}, {invertAll, 0.2, 0}},
		{{shearY, 0.9, 8}, {invertAll, 0.7, 0}},
		{{equalizeAll, 0.6, 0}, {solarizeAbove, 0.6, 6}},
		{{invertAll, 0.9, 0}, {equalizeAll, 0.6, 0}},
		{{equalizeAll, 0.6, 0}, {rotateBy, 0.9, 3}},
		{{shearX, 0.9, 4}, {autoContrast, 0.8, 0}},
		{{shearY, 0.9, 8}, {invertAll, 0.4, 0}},
		{{shearY, 0.9, 5}, {solarizeAbove, 0.2, 6}},
		{{invertAll, 0.9, 0}, {autoContrast, 0.8, 0}},
		{{equalizeAll, 0.6, 0}, {rotateBy, 0.9, 3}},
		{{shearX, 0.9, 4}, {solarizeAbove, 0.3, 3}},
		{{shearY, 0.8, 8}, {invertAll, 0.7, 0}},
		{{equalizeAll, 0.9, 0}, {translateY, 0.6, 6}},
		{{invertAll, 0.9, 0}, {equalizeAll, 0.6, 0}},
		{{enhanceContrast, 0.3, 3}, {rotateBy, 0.8, 4}},
		{{invertAll, 0.8, 0}, {translateY, 0, 2}},
		{{shearY, 0.7, 6}, {solarizeAbove, 0.4, 8}},
		{{invertAll, 0.6, 0}, {rotateBy, 0.8, 4}},
		{{shearY, 0.3, 7}, {translateX, 0.9, 3}},
		{{shearX, 0.1, 6}, {invertAll, 0.6, 0}},
		{{solarizeAbove, 0.7, 2}, {translateY, 0.6, 7}},
		{{shearY, 0.8, 4}, {invertAll, 0.8, 0}},
		{{shearX, 0.7, 9}, {translateY, 0.8, 3}},
		{{shearY, 0.8, 5}, {autoContrast, 0.7, 0}},
		{{shearX, 0.7, 2}, {invertAll, 0.1, 0}},
	},
}

// AugMix blends an image with several copies of it, each changed by its own chain of random
// operations (Hendrycks et al. 2019, as in torchvision). The operations give Pillow's pixels, as in
// RandAugment, where torchvision's AugMix takes its tensor kernels.
type AugMix struct {
	// largest strength of an operation
	Severity *int `json:"severity" default:"3" in:"[1,10]"`
	// chains
	Width *int `json:"mixture_width" default:"3" in:"[1,32]"`
	// operations in a chain; 0 or less means 1 to 3, as it happens
	Depth int `json:"chain_depth" default:"-1" in:"[-inf,32]"`
	// of the Dirichlet and beta distributions of the shares
	Alpha *float64 `json:"alpha" default:"1" in:"(0,1e6)"`
	// brightness, color, contrast and sharpness too
	AllOps        *bool  `json:"all_ops" default:"true"`
	Interpolation string `json:"interpolation" default:"bilinear" choices:"nearest bilinear bicubic"`
	// as in Pad
	Fill []int `json:"fill" default:"[0]" is:"fill"`
}

// maxChains limits how many copies are mixed, so that the shares fit into an array on the stack.
const maxChains = 32

// Resolve writes every random Depth as -1, so that equal pipelines have equal recipes.
func (t AugMix) Resolve() (Transform, error) {
	t.Depth = max(-1, t.Depth)
	return t, nil
}

const augMixBins = 10

// augMixSpace holds the ranges of strengths in torchvision's AugMix.
var augMixSpace = augmentSpace{shear: 0.3, rotate: 30, color: 0.9, keep: 4, bits: 4,
	moveX: func(w, _ int) float64 { return float64(w) / 3 },
	moveY: func(_, h int) float64 { return float64(h) / 3 }}

// augMixOps are the operations in torchvision's order. AllOps adds the last four.
var augMixOps = []augmentationID{
	shearX, shearY, translateX, translateY, rotateBy, posterizeBits, solarizeAbove, autoContrast, equalizeAll,
	enhanceBrightness, enhanceColor, enhanceContrast, enhanceSharpness,
}

// Build draws the shares and the chains. Boxes and masks cannot follow AugMix: the result blends
// copies that were moved differently.
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
	keep := r.Beta(*t.Alpha)
	r.dirichlet(shares[:*t.Width], *t.Alpha)
	if err := addMix(p, mixBegin, keep); err != nil {
		return err
	}
	for _, share := range shares[:*t.Width] {
		depth := t.Depth
		if depth < 0 {
			depth = 1 + r.IntN(3)
		}
		for range depth {
			op, bin, negative := ops[r.IntN(len(ops))], r.IntN(*t.Severity), r.IntN(2) == 1
			if err := augmentBy(p, op, &augMixSpace, bin, augMixBins, negative, f, fillBytes(t.Fill)); err != nil {
				return err
			}
		}
		if err := addMix(p, mixAdd, share*(1-keep)); err != nil {
			return err
		}
	}
	p.moves.lost = p.at // the image is blended from several copies, each moved differently
	return addMix(p, mixEnd, 0)
}

func (AugMix) Randomized() {}

// mixStep is an operation of the Runner's mixer, which keeps the original image between the chains
// of AugMix.
type mixStep uint8

const (
	_        mixStep = iota
	mixBegin         // keep the image, and begin the sum with a share of it
	mixAdd           // add a share of the image to the sum, and continue with the one that was kept
	mixEnd           // make the image what the sum is
)

// addMix adds a mixing step to the image's operations.
func addMix(p *Plan, step mixStep, share float64) error {
	if err := addChange(p, nil, share); err != nil {
		return err
	}
	p.ops[len(p.ops)-1].mix = step
	return nil
}

// mixer blends images in float32. It belongs to a Runner, and its memory is reused for all images.
type mixer struct {
	kept Image
	sum  []float32
}

// do carries out one mixing step on m.
func (x *mixer) do(m *Image, step mixStep, share float32) {
	switch step {
	case mixBegin:
		x.kept.Reshape(m.W, m.H, m.C)
		copy(x.kept.Pix, m.Pix)
		x.sum = pixel.Grow(x.sum, len(m.Pix))
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

// dirichlet fills shares with a draw of the symmetric Dirichlet distribution with parameter a; the
// shares add up to 1. Gamma numbers are drawn as logarithms and divided by the largest, because
// small a makes all of them underflow to 0.
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
