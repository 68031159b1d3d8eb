package transforms

import (
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

func init() {
	Register[ResizeKeepRatio]()
	Register[CenterCropOrPad]()
}

// ResizeKeepRatio resizes an image without distortion so that it covers a size, or fits into
// it, or in between: timm's, without its random factors.
type ResizeKeepRatio struct {
	Size          []int   `json:"size"`          // one for a square, or height and width
	Longest       float64 `json:"longest"`       // 0 covers Size, 1 fits into it
	Interpolation string  `json:"interpolation"` // as in Resize; "" means bilinear
	PassOrder     string  `json:"pass_order"`    // as in Resize; "" means horizontal
}

// Op returns "ResizeKeepRatio".
func (ResizeKeepRatio) Op() string { return "ResizeKeepRatio" }

// Resolve spells out Size and Interpolation.
func (t ResizeKeepRatio) Resolve() (Transform, error) {
	var err error
	t.Size, t.Interpolation, err = resolveBox(t.Size, t.Interpolation)
	if !(t.Longest >= 0 && t.Longest <= 1) {
		err = errors.Join(err, fmt.Errorf("longest %v must be 0 to 1", t.Longest))
	}
	return t, errors.Join(err, resolvePassOrder(&t.PassOrder))
}

// Build adds the resize.
func (t ResizeKeepRatio) Build(p *Plan) error {
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	w, h := t.scaled(p.info.W, p.info.H)
	return p.resizeBy(t.PassOrder, w, h, f)
}

// scaled is timm's ResizeKeepRatio.get_params.
func (t ResizeKeepRatio) scaled(w, h int) (int, int) {
	down, across := float64(h)/float64(t.Size[0]), float64(w)/float64(t.Size[1])
	ratio := float64(max(down, across)*t.Longest) + float64(min(down, across)*(1-t.Longest))
	return int(math.RoundToEven(float64(w) / ratio)), int(math.RoundToEven(float64(h) / ratio))
}

// CenterCropOrPad is CenterCrop with a border of one's choice where the image is smaller:
// timm's.
type CenterCropOrPad struct {
	Size []int   `json:"size"` // pixels: one for a square, or height and width
	Fill []int   `json:"fill"` // with PadConstant, as in Pad; nil means 0
	Mode PadMode `json:"padding_mode"`
}

// Op returns "CenterCropOrPad".
func (CenterCropOrPad) Op() string { return "CenterCropOrPad" }

// Resolve spells out Size and Fill.
func (t CenterCropOrPad) Resolve() (Transform, error) {
	pad, err := Pad{Padding: []int{0}, Fill: t.Fill, Mode: t.Mode}.Resolve()
	if err := errors.Join(checkSize(t.Size), err); err != nil {
		return nil, err
	}
	t.Size, t.Fill = []int{t.Size[0], t.Size[len(t.Size)-1]}, pad.(Pad).Fill
	return t, nil
}

// Build adds a crop along the axes that are too long and a border along those too short.
func (t CenterCropOrPad) Build(p *Plan) error {
	return p.center(t.Size[1], t.Size[0], t.Mode, fillBytes(t.Fill))
}
