package transforms

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

func init() {
	Register[RandAugment]()
	Register[TrivialAugmentWide]()
}

// augmentation is one of the operations that RandAugment and TrivialAugmentWide draw from. level
// maps a strength to the operation's own unit; do adds the operation to a plan.
type augmentation struct {
	signed bool
	level  func(x magnitude, s *augmentSpace, w, h int) float64
	do     func(p *Plan, v float64, f kernel.Filter, fill [3]byte) error
}

// augmentSpace holds the strongest effect of each operation.
type augmentSpace struct {
	shear, rotate, color float64
	moveX, moveY         func(w, h int) float64
	keep, bits           float64 // bits that posterize keeps at strength 0, and how many of them it drops at full strength
}

// The spaces of torchvision's two classes.
var (
	randAugmentSpace = augmentSpace{shear: 0.3, rotate: 30, color: 0.9, keep: 8, bits: 4,
		moveX: func(w, _ int) float64 { return 150.0 / 331 * float64(w) },
		moveY: func(_, h int) float64 { return 150.0 / 331 * float64(h) }}
	trivialAugmentSpace = augmentSpace{shear: 0.99, rotate: 135, color: 0.99, keep: 8, bits: 6,
		moveX: func(_, _ int) float64 { return 32 },
		moveY: func(_, _ int) float64 { return 32 }}
)

// augmentationID is an index into augmentations.
type augmentationID int

const (
	_ augmentationID = iota // Identity
	shearX
	shearY
	translateX
	translateY
	rotateBy
	enhanceBrightness
	enhanceColor
	enhanceContrast
	enhanceSharpness
	posterizeBits
	solarizeAbove
	autoContrast
	equalizeAll
	invertAll // of AutoAugment alone: it is in no list that others draw from
)

// augmentations are in torchvision's order, because a draw is an index into the list.
var augmentations = []augmentation{
	{do: func(p *Plan, _ float64, _ kernel.Filter, _ [3]byte) error { return p.bytes() }}, // Identity
	{signed: true, level: shearLevel, do: func(p *Plan, v float64, f kernel.Filter, fill [3]byte) error {
		return addWarp(p, warp(0, 0, 0, 1, math.Atan(v)*180/math.Pi, 0, 0, 0), f, fill)
	}},
	{signed: true, level: shearLevel, do: func(p *Plan, v float64, f kernel.Filter, fill [3]byte) error {
		return addWarp(p, warp(0, 0, 0, 1, 0, math.Atan(v)*180/math.Pi, 0, 0), f, fill)
	}},
	{signed: true, level: func(x magnitude, s *augmentSpace, w, h int) float64 { return x.between(0, s.moveX(w, h)) },
		do: func(p *Plan, v float64, f kernel.Filter, fill [3]byte) error {
			return addMove(p, math.Trunc(v), 0, f, fill)
		}},
	{signed: true, level: func(x magnitude, s *augmentSpace, w, h int) float64 { return x.between(0, s.moveY(w, h)) },
		do: func(p *Plan, v float64, f kernel.Filter, fill [3]byte) error {
			return addMove(p, 0, math.Trunc(v), f, fill)
		}},
	{signed: true, level: func(x magnitude, s *augmentSpace, _, _ int) float64 { return x.between(0, s.rotate) },
		do: func(p *Plan, v float64, f kernel.Filter, fill [3]byte) error {
			x, y := centerOr(nil, p.info.W, p.info.H)
			return addRotation(p, v, x, y, f, fill)
		}},
	enhancement(brightness),
	enhancement(saturation),
	enhancement(contrast),
	enhancement(sharpness),
	{level: func(x magnitude, s *augmentSpace, _, _ int) float64 {
		return s.keep - math.RoundToEven(x.share()*s.bits)
	}, do: whole(posterize)},
	{level: func(x magnitude, _ *augmentSpace, _, _ int) float64 { return x.between(255, 0) }, do: whole(solarize)},
	{do: whole(autocontrast)},
	{do: whole(equalize)},
}

func shearLevel(x magnitude, s *augmentSpace, _, _ int) float64 { return x.between(0, s.shear) }

// magnitude is a strength: one of a number of bins.
type magnitude struct{ bin, bins int }

// share returns the strength between 0, for the first bin, and 1, for the last.
func (x magnitude) share() float64 { return float64(x.bin) / float64(x.bins-1) }

// between returns the bin's element of torch.linspace(lo, hi, bins), in torch's float32 arithmetic:
// a rotation that differs in the last bit may move a pixel.
func (x magnitude) between(lo, hi float64) float64 {
	return float64(newLinspace(lo, hi, x.bins).at(x.bin))
}

// linspace is torch.linspace: n numbers of float32.
type linspace struct {
	lo, hi, step float64
	n            int
}

func newLinspace(lo, hi float64, n int) linspace {
	a, b := float32(lo), float32(hi)
	return linspace{float64(a), float64(b), float64((b - a) / float32(max(n-1, 1))), n}
}

// at returns element i. Like torch, it counts from the nearer end, which changes the rounding.
func (l linspace) at(i int) float32 {
	if i < l.n/2 {
		return float32(l.lo + float64(l.step*float64(i)))
	}
	return float32(l.hi - float64(l.step*float64(l.n-1-i)))
}

// addMove shifts the image by x and y pixels.
func addMove(p *Plan, x, y float64, f kernel.Filter, fill [3]byte) error {
	return addWarp(p, warp(0, x, y, 1, 0, 0, float64(p.info.W)*0.5, float64(p.info.H)*0.5), f, fill)
}

// enhancement returns an augmentation that blends an image with a degenerate version of it: factor
// 1 leaves the image as it is.
func enhancement(op ImageOp) augmentation {
	return augmentation{
		signed: true,
		level:  func(x magnitude, s *augmentSpace, _, _ int) float64 { return x.between(0, s.color) },
		do:     func(p *Plan, v float64, _ kernel.Filter, _ [3]byte) error { return addChange(p, op, 1+v) },
	}
}

// whole returns the function of an operation that looks at colors only, and so needs neither filter
// nor fill.
func whole(op ImageOp) func(*Plan, float64, kernel.Filter, [3]byte) error {
	return func(p *Plan, v float64, _ kernel.Filter, _ [3]byte) error { return addChange(p, op, v) }
}

// addAugmentation applies operation i at strength bin of bins, in a random direction. A direction
// is drawn only for operations that have two, as in torchvision.
func addAugmentation(p *Plan, i int, s *augmentSpace, bin, bins int, f kernel.Filter, fill [3]byte) error {
	negative := augmentations[i].signed && p.rnd.IntN(2) == 1
	return augmentBy(p, augmentationID(i), s, bin, bins, negative, f, fill)
}

// augmentBy applies an operation; negative reverses the direction of an operation that has two.
func augmentBy(p *Plan, id augmentationID, s *augmentSpace, bin, bins int, negative bool, f kernel.Filter,
	fill [3]byte) error {
	a, v := &augmentations[id], 0.0
	if a.level != nil {
		v = a.level(magnitude{bin, bins}, s, p.info.W, p.info.H)
	}
	if a.signed && negative {
		v = -v
	}
	return a.do(p, v, f, fill)
}

// RandAugment applies NumOps random operations out of fourteen, all with the strength Magnitude
// (Cubuk et al. 2019, as in torchvision).
type RandAugment struct {
	NumOps        *int   `json:"num_ops" default:"2" in:"[0,100]"` // operations
	Magnitude     *int   `json:"magnitude" default:"9"`            // 0 to Bins-1
	Bins          *int   `json:"num_magnitude_bins" default:"31"`
	Interpolation string `json:"interpolation" default:"nearest" choices:"nearest bilinear bicubic"`
	Fill          []int  `json:"fill" default:"[0]" is:"fill"` // as in Pad
}

// Resolve checks that Magnitude is one of the bins. Fewer than two bins are refused, since a
// strength is divided by Bins-1.
func (t RandAugment) Resolve() (Transform, error) {
	if m, bins := *t.Magnitude, *t.Bins; bins < 2 || m < 0 || m >= bins {
		return nil, fmt.Errorf("magnitude %d must be 0 to num_magnitude_bins-1, and num_magnitude_bins %d 2 or more", m,
			bins)
	}
	return t, nil
}

// Build draws the operations.
func (t RandAugment) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	for range *t.NumOps {
		i := p.Rand().IntN(len(augmentations))
		if err := addAugmentation(p, i, &randAugmentSpace, *t.Magnitude, *t.Bins, f, fillBytes(t.Fill)); err != nil {
			return err
		}
	}
	return nil
}

func (RandAugment) Randomized() {}

// TrivialAugmentWide applies one random operation out of fourteen, at a random strength
// (Müller and Hutter 2021, as in torchvision).
type TrivialAugmentWide struct {
	Bins          *int   `json:"num_magnitude_bins" default:"31" in:"[2,inf)"`
	Interpolation string `json:"interpolation" default:"nearest" choices:"nearest bilinear bicubic"`
	Fill          []int  `json:"fill" default:"[0]" is:"fill"` // as in Pad
}

// Build draws the operation and its strength.
func (t TrivialAugmentWide) Build(p *Plan) error {
	f, err := parseWarpFilter(t.Interpolation)
	if err != nil {
		return err
	}
	i := p.Rand().IntN(len(augmentations))
	return addAugmentation(p, i, &trivialAugmentSpace, p.Rand().IntN(*t.Bins), *t.Bins, f, fillBytes(t.Fill))
}

func (TrivialAugmentWide) Randomized() {}
