package transforms

import (
	"fmt"
	"image"
	"slices"
)

func init() {
	Register[CenterCrop]()
	Register[Crop]()
	Register[CornerCrop]()
}

// CenterCrop keeps the center of an image. If the image is smaller than Size, it is padded with
// black, as in torchvision.
type CenterCrop struct {
	Size []int `json:"size" is:"box"` // pixels: one for a square, or height and width
}

// Build adds a crop along the axes that are too long and a border along those too short.
func (t CenterCrop) Build(p *Plan) error {
	return cropCenter(p, t.Size[1], t.Size[0], PadConstant, [3]byte{})
}

// cropCenter keeps the center of the image, w x h pixels. An image that is smaller along an axis
// gets a border there.
func cropCenter(p *Plan, w, h int, mode PadMode, fill [3]byte) error {
	in := p.Info()
	x, y := max(w-in.W, 0), max(h-in.H, 0)
	if err := p.Crop(centered(in.W, in.H, min(w, in.W), min(h, in.H))); err != nil || x == 0 && y == 0 {
		return err
	}
	return p.Pad(x/2, y/2, x-x/2, y-y/2, mode, fill)
}

// Crop keeps a rectangle, which must be within the image: torchvision's functional crop.
type Crop struct {
	Top    int `json:"top"`
	Left   int `json:"left"`
	Height int `json:"height" in:"[1,1048576]"`
	Width  int `json:"width" in:"[1,1048576]"`
}

// Build adds the crop.
func (t Crop) Build(p *Plan) error {
	return p.Crop(image.Rect(t.Left, t.Top, t.Left+t.Width, t.Top+t.Height))
}

// CornerCrop keeps a corner of an image, or its center: one of torchvision's FiveCrop.
type CornerCrop struct {
	Size   []int  `json:"size" is:"box"` // one for a square, or height and width
	Corner string `json:"corner" is:"corner"`
}

var corners = []string{"top-left", "top-right", "bottom-left", "bottom-right", "center"}

// Build adds the crop.
func (t CornerCrop) Build(p *Plan) error {
	in, h, w := p.Info(), t.Size[0], t.Size[1]
	if w > in.W || h > in.H {
		return fmt.Errorf("input of %dx%d pixels is smaller than %dx%d", in.W, in.H, w, h)
	}
	r := image.Rect(0, 0, w, h)
	switch t.Corner {
	case "top-right":
		r = r.Add(image.Pt(in.W-w, 0))
	case "bottom-left":
		r = r.Add(image.Pt(0, in.H-h))
	case "bottom-right":
		r = r.Add(image.Pt(in.W-w, in.H-h))
	case "center":
		r = centered(in.W, in.H, w, h)
	}
	return p.Crop(r)
}

// FiveCrop returns the pipelines that are before, then one of torchvision's five crops, then
// after: an image becomes five records. size is one number, or height and width.
func FiveCrop(before []Transform, size []int, after []Transform) ([]*Pipeline, error) {
	out := make([]*Pipeline, len(corners))
	for i, corner := range corners {
		p, err := Compose(slices.Concat(before, []Transform{CornerCrop{Size: size, Corner: corner}}, after)...)
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}

// TenCrop returns the five pipelines of FiveCrop, and the same five for the mirrored image.
func TenCrop(before []Transform, size []int, after []Transform) ([]*Pipeline, error) {
	five, err := FiveCrop(before, size, after)
	if err != nil {
		return nil, err
	}
	mirrored, err := FiveCrop(slices.Concat(before, []Transform{HorizontalFlip{}}), size, after)
	return append(five, mirrored...), err
}
