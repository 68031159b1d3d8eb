package transforms

import (
	"errors"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
)

func init() {
	Register[RandomZoomOut]()
	Register[RandomIoUCrop]()
	Register[ScaleJitter]()
	Register[RandomShortestSize]()
	Register[RandomResize]()
	Register[FixedSizeCrop]()
}

// The transforms of this file follow torchvision's detection references. All but
// RandomZoomOut and RandomIoUCrop output random sizes, which a later transform brings to one size,
// such as RandomCrop with PadIfNeeded.

// RandomZoomOut puts an image at a random place of a larger one, so that objects become smaller.
type RandomZoomOut struct {
	Fill  []int     `json:"fill" default:"[0]" is:"fill"`               // as in Pad
	Range []float64 `json:"side_range" default:"[1,4]" is:"range 1024"` // of the factor for both sides, at least 1
	P     *float64  `json:"p" default:"0.5" in:"[0,1]"`                 // probability
}

// Resolve checks Range.
func (t RandomZoomOut) Resolve() (Transform, error) {
	if t.Range[0] < 1 {
		return nil, fmt.Errorf("side_range %v must begin with at least 1", t.Range)
	}
	return t, nil
}

// Build draws the size, and where the image is.
func (t RandomZoomOut) Build(p *Plan) error {
	r, in := p.Rand(), p.Info()
	if r.Float64() >= *t.P {
		return p.bytes()
	}
	s := r.Between(t.Range[0], t.Range[1])
	w, h := int(float64(in.W)*s), int(float64(in.H)*s)
	left, top := int(float64(w-in.W)*r.Float64()), int(float64(h-in.H)*r.Float64())
	return p.Pad(left, top, w-in.W-left, h-in.H-top, PadConstant, fillBytes(t.Fill))
}

func (RandomZoomOut) Randomized() {}

// RandomIoUCrop keeps a random part of an image that overlaps a box enough, as SSD is trained (Liu
// et al. 2016). A box whose center is outside of the part becomes empty; a SanitizeBoundingBoxes
// later in the pipeline removes it.
type RandomIoUCrop struct {
	// least share of each side
	MinScale *float64 `json:"min_scale" default:"0.3"`
	MaxScale *float64 `json:"max_scale" default:"1"`
	// least width / height of the part
	MinAspect *float64 `json:"min_aspect_ratio" default:"0.5"`
	MaxAspect *float64 `json:"max_aspect_ratio" default:"2"`
	// the choices for the least overlap (intersection over union) of a box and the crop, drawn anew for each image;
	// with 1 or more the image stays as it is; nil means 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1
	Options []float64 `json:"sampler_options" default:"[0,0.1,0.3,0.5,0.7,0.9,1]"`
	// parts that are tried before another overlap is drawn
	Trials *int `json:"trials" default:"40" in:"[1,65536]"`
}

// Resolve checks the limits.
func (t RandomIoUCrop) Resolve() (Transform, error) {
	if len(t.Options) == 0 || !(slices.Min(t.Options) >= 0) {
		return nil, fmt.Errorf("sampler_options %v must be overlaps, 0 to 1", t.Options)
	}
	return t, errors.Join(checkRange("min_scale and max_scale", []float64{*t.MinScale, *t.MaxScale}, 1),
		checkRange("min_aspect_ratio and max_aspect_ratio", []float64{*t.MinAspect, *t.MaxAspect}, math.MaxFloat32))
}

// iouRounds limits how often RandomIoUCrop draws a new least overlap. torchvision draws until a
// crop fits, which may take for ever; here the image stays as it is after the last round.
const iouRounds = 100

// Build draws the part.
func (t RandomIoUCrop) Build(p *Plan) error {
	if len(p.boxes) == 0 {
		return p.bytes() // there is nothing to choose by; package geometry refuses fields without boxes
	}
	r, in := p.Rand(), p.Info()
	for range iouRounds {
		least := t.Options[r.IntN(len(t.Options))]
		if least >= 1 {
			return p.bytes()
		}
		for range *t.Trials {
			part := t.draw(r, in.W, in.H)
			if part.Empty() || !overlaps(p, part, least) {
				continue
			}
			if err := p.bytes(); err != nil {
				return err
			}
			return cropByIoU(p, part)
		}
	}
	return p.bytes()
}

// draw returns a random part of w x h pixels, or an empty rectangle if the part's aspect is not
// within the range.
func (t RandomIoUCrop) draw(r *Rand, w, h int) image.Rectangle {
	pw := int(float64(w) * r.Between(*t.MinScale, *t.MaxScale))
	ph := int(float64(h) * r.Between(*t.MinScale, *t.MaxScale))
	if aspect := float64(pw) / float64(ph); !(aspect >= *t.MinAspect && aspect <= *t.MaxAspect) {
		return image.Rectangle{}
	}
	x, y := int(float64(w-pw)*r.Float64()), int(float64(h-ph)*r.Float64())
	return image.Rect(x, y, x+pw, y+ph)
}

func (RandomIoUCrop) Randomized() {}

// overlaps reports whether the center of at least one box is in the part, and one of these boxes
// overlaps the part by least or more. Boxes are moved to where the plan so far has brought them.
func overlaps(p *Plan, part image.Rectangle, least float64) bool {
	found := false
	best := 0.0
	for i := 0; i+4 <= len(p.boxes); i += 4 {
		b := box{float64(p.boxes[i]), float64(p.boxes[i+1]), float64(p.boxes[i+2]), float64(p.boxes[i+3])}
		p.moves.box(&b)
		if b.centerIn(part) {
			found, best = true, max(best, b.overlap(part))
		}
	}
	return found && best >= least
}

// overlap returns the intersection over union of b and r.
func (b *box) overlap(r image.Rectangle) float64 {
	x0, y0 := max(b[0], float64(r.Min.X)), max(b[1], float64(r.Min.Y))
	x1, y1 := min(b[2], float64(r.Max.X)), min(b[3], float64(r.Max.Y))
	common := max(x1-x0, 0) * max(y1-y0, 0)
	return common / ((b[2]-b[0])*(b[3]-b[1]) + float64(r.Dx()*r.Dy()) - common)
}

// cropByIoU is Plan.Crop that also empties boxes whose center is outside of the part.
func cropByIoU(p *Plan, part image.Rectangle) error {
	n := len(p.moves.list)
	if err := p.Crop(part); err != nil {
		return err
	}
	p.moves.list[n].kind, p.moves.list[n].at = moveIoUCrop, [4]int{part.Min.X, part.Min.Y, part.Max.X, part.Max.Y}
	return nil
}

// ScaleJitter resizes an image to a random share of the largest size that fits into a target.
type ScaleJitter struct {
	// width and height, in this order, as in torchvision; one for a square
	Target []int `json:"target_size" is:"box"`
	// of the share
	Range []float64 `json:"scale_range" default:"[0.1,2]" is:"range 1024"`
	// as in Resize
	Interpolation string `json:"interpolation" default:"bilinear" is:"filter"`
	// as in Resize
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
	// is always true
	Antialias Antialias `json:"antialias"`
}

// Build draws the share.
func (t ScaleJitter) Build(p *Plan) error {
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	in := p.Info()
	w, h := float64(in.W), float64(in.H)
	r := min(float64(t.Target[1])/h, float64(t.Target[0])/w) * p.Rand().Between(t.Range[0], t.Range[1])
	return resizeBy(p, t.PassOrder, int(w*r), int(h*r), f)
}

func (ScaleJitter) Randomized() {}

// RandomShortestSize makes the shorter side of an image one of several lengths, and the longer one at most MaxSize.
// Lengths are exact, where torchvision's rounding makes 799 pixels of 800 for one size in twenty.
type RandomShortestSize struct {
	MinSize       []int     `json:"min_size"`                                            // one of which is drawn
	MaxSize       int       `json:"max_size" in:"[0,1048576]"`                           // 0 means none
	Interpolation string    `json:"interpolation" default:"bilinear" is:"filter"`        // as in Resize
	PassOrder     string    `json:"pass_order" default:"auto" choices:"auto horizontal"` // as in Resize
	Antialias     Antialias `json:"antialias"`                                           // is always true
}

// Resolve checks MinSize.
func (t RandomShortestSize) Resolve() (Transform, error) {
	if len(t.MinSize) == 0 {
		return nil, errors.New("min_size must be at least one number")
	}
	for _, n := range t.MinSize {
		if err := checkSize([]int{n}); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Build draws the length.
func (t RandomShortestSize) Build(p *Plan) error {
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	in, side := p.Info(), t.MinSize[p.Rand().IntN(len(t.MinSize))]
	of := min(in.W, in.H)
	if long := max(in.W, in.H); t.MaxSize > 0 && t.MaxSize*of < side*long {
		side, of = t.MaxSize, long
	}
	return resizeBy(p, t.PassOrder, in.W*side/of, in.H*side/of, f)
}

func (RandomShortestSize) Randomized() {}

// RandomResize makes the shorter side of an image a random length.
type RandomResize struct {
	MinSize int `json:"min_size"`
	// is not reached, as in torchvision
	MaxSize int `json:"max_size"`
	// as in Resize
	Interpolation string `json:"interpolation" default:"bilinear" is:"filter"`
	// as in Resize
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
	// is always true
	Antialias Antialias `json:"antialias"`
}

// Resolve checks the lengths.
func (t RandomResize) Resolve() (Transform, error) {
	if t.MinSize < 1 || t.MaxSize <= t.MinSize || t.MaxSize > 1<<20 {
		return nil, fmt.Errorf("min_size %d and max_size %d must be lengths, the smaller one first", t.MinSize, t.MaxSize)
	}
	return t, nil
}

// Build draws the length.
func (t RandomResize) Build(p *Plan) error {
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	in, side := p.Info(), t.MinSize+p.Rand().IntN(t.MaxSize-t.MinSize)
	w, h := shorter(in.W, in.H, side, 0)
	return resizeBy(p, t.PassOrder, w, h, f)
}

func (RandomResize) Randomized() {}

// FixedSizeCrop keeps a random part of a given size of an image. A smaller one is padded at the right and at the
// bottom. Boxes that have no area in the part are removed, as by SanitizeBoundingBoxes. It is a transform of
// torchvision's detection references.
type FixedSizeCrop struct {
	Size []int   `json:"size" is:"box"`                // one for a square, or height and width
	Fill []int   `json:"fill" default:"[0]" is:"fill"` // as in Pad
	Mode PadMode `json:"padding_mode" choices:"constant edge reflect symmetric"`
}

// Build draws one number for both axes, as torchvision does.
func (t FixedSizeCrop) Build(p *Plan) error {
	in, r := p.Info(), p.Rand().Float64()
	h, w := min(in.H, t.Size[0]), min(in.W, t.Size[1])
	if h < in.H || w < in.W {
		y, x := int(float64(in.H-h)*r), int(float64(in.W-w)*r)
		if err := p.Crop(image.Rect(x, y, x+w, y+h)); err != nil {
			return err
		}
		p.moved(moveSanitize, [4]int{}, math.SmallestNonzeroFloat64, 0)
	}
	if h < t.Size[0] || w < t.Size[1] {
		return p.Pad(0, 0, t.Size[1]-w, t.Size[0]-h, t.Mode, fillBytes(t.Fill))
	}
	return nil
}

func (FixedSizeCrop) Randomized() {}
