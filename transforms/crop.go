package transforms

import "image"

func init() {
	Register[CenterCrop]()
	Register[Crop]()
}

// CenterCrop keeps the center of an image. Where the image is smaller than Size, black is
// added around it, as in torchvision.
type CenterCrop struct {
	Size []int `json:"size"` // pixels: one for a square, or height and width
}

// Op returns "CenterCrop".
func (CenterCrop) Op() string { return "CenterCrop" }

// Resolve spells out height and width.
func (t CenterCrop) Resolve() (Transform, error) {
	if err := checkSize(t.Size); err != nil {
		return nil, err
	}
	return CenterCrop{Size: []int{t.Size[0], t.Size[len(t.Size)-1]}}, nil
}

// Build adds a crop along the axes that are too long and a border along those too short.
func (t CenterCrop) Build(p *Plan) error {
	return p.center(t.Size[1], t.Size[0], PadConstant, [3]byte{})
}

// center keeps the center w x h of the image, which gets a border where it is smaller.
func (p *Plan) center(w, h int, mode PadMode, fill [3]byte) error {
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
	Height int `json:"height"`
	Width  int `json:"width"`
}

// Op returns "Crop".
func (Crop) Op() string { return "Crop" }

// Resolve checks that the rectangle is not empty.
func (t Crop) Resolve() (Transform, error) {
	if err := checkSize([]int{t.Height, t.Width}); err != nil {
		return nil, err
	}
	return t, nil
}

// Build adds the crop.
func (t Crop) Build(p *Plan) error {
	return p.Crop(image.Rect(t.Left, t.Top, t.Left+t.Width, t.Top+t.Height))
}
