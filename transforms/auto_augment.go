package transforms

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
)

func init() { Register[AutoAugment]() }

// AutoAugment applies one of 25 pairs of operations that were found to help on a dataset, each
// with a probability and strength of its own (Cubuk et al. 2018, as in torchvision).
type AutoAugment struct {
	Policy        string `json:"policy"`        // imagenet, cifar10 or svhn; "" means imagenet
	Interpolation string `json:"interpolation"` // nearest, bilinear or bicubic; "" means nearest
	Fill          []int  `json:"fill"`          // as in Pad; nil means 0
}

// Op returns "AutoAugment".
func (AutoAugment) Op() string { return "AutoAugment" }

// Resolve fills in all.
func (t AutoAugment) Resolve() (Transform, error) {
	if t.Policy == "" {
		t.Policy = "imagenet"
	}
	var errs [3]error
	if _, ok := policies[t.Policy]; !ok {
		errs[0] = fmt.Errorf("policy %q must be one of %v", t.Policy, slices.Sorted(maps.Keys(policies)))
	}
	t.Interpolation, errs[1] = resolveWarpFilter(t.Interpolation)
	t.Fill, errs[2] = resolveFill(t.Fill)
	return t, errors.Join(errs[:]...)
}

// Build draws the pair, and of each operation whether it happens and its direction.
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
			err = p.autoAugment(pair[i], negative, f, fillBytes(t.Fill))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Randomized marks the transform as random.
func (AutoAugment) Randomized() {}

// policyStep is an operation of a pair.
type policyStep struct {
	op  augmentationID
	p   float64 // probability
	bin int     // of ten
}

func (p *Plan) autoAugment(s policyStep, negative bool, f kernel.Filter, fill [3]byte) error {
	if s.op == invertAll {
		return p.change(invert)
	}
	return p.augmentBy(s.op, &randAugmentSpace, s.bin, 10, negative, f, fill)
}

// policies are torchvision's.
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
