package transforms

import (
	"fmt"
	"image"
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

func init() {
	Register[RandomResizedCrop]()
	Register[RandomCrop]()
}

// RandomResizedCrop resizes a random part of an image, of random area and aspect: the usual
// augmentation for ImageNet. Only the part is decoded, so that a small crop of a large photograph
// is cheap.
type RandomResizedCrop struct {
	// of the output: one for a square, or height and width
	Size []int `json:"size" is:"box"`
	// range of the part's share of the area
	Scale []float64 `json:"scale" default:"[0.08,1]" is:"range 1"`
	// range of width / height, drawn by its logarithm
	Ratio []float64 `json:"ratio" default:"[0.75,1.3333333333333333]" is:"range 1e308"`
	// as in Resize
	Interpolation string `json:"interpolation" default:"bilinear" is:"filter"`
	// as in Resize
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
	// is always true
	Antialias Antialias `json:"antialias"`
}

// checkRange returns an error unless r is a range [lo, hi] with 0 < lo <= hi <= most.
func checkRange(name string, r []float64, most float64) error {
	if len(r) != 2 || !(r[0] > 0 && r[0] <= r[1] && r[1] <= most) {
		return fmt.Errorf("%s %v must be two numbers, the smaller first, above 0 and at most %v", name, r, most)
	}
	return nil
}

// Build draws the part.
func (t RandomResizedCrop) Build(p *Plan) error {
	in := p.Info()
	if err := p.Crop(drawPart(p.Rand(), in.W, in.H, t.Scale, t.Ratio, anyPart)); err != nil {
		return err
	}
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	return resizeBy(p, t.PassOrder, t.Size[1], t.Size[0], f)
}

func (RandomResizedCrop) Randomized() {}

// partSize says whether a random part may be as large as the image.
type partSize int

const (
	smallerPart partSize = iota // than the image
	anyPart                     // also the image
)

// drawPart is torchvision's RandomResizedCrop.get_params. After ten draws that do not fit, it falls
// back to the center. If the part must be smaller than the image, it returns an empty rectangle
// instead, as RandomErasing.get_params gives up.
func drawPart(rnd *Rand, w, h int, scale, ratio []float64, size partSize) image.Rectangle {
	most := int(size)
	for range 10 {
		area := float64(w*h) * rnd.Between(scale[0], scale[1])
		aspect := math.Exp(rnd.Between(math.Log(ratio[0]), math.Log(ratio[1])))
		pw := int(math.RoundToEven(math.Sqrt(area * aspect)))
		ph := int(math.RoundToEven(math.Sqrt(area / aspect)))
		if pw > 0 && ph > 0 && pw < w+most && ph < h+most {
			y, x := rnd.IntN(h-ph+1), rnd.IntN(w-pw+1)
			return image.Rect(x, y, x+pw, y+ph)
		}
	}
	if size == smallerPart {
		return image.Rectangle{}
	}
	return nearestAspect(w, h, ratio)
}

// nearestAspect returns the largest centered part whose aspect is within ratio.
func nearestAspect(w, h int, ratio []float64) image.Rectangle {
	pw, ph := w, h
	switch in := float64(w) / float64(h); {
	case in < ratio[0]:
		ph = max(int(math.RoundToEven(float64(w)/ratio[0])), 1)
	case in > ratio[1]:
		pw = max(int(math.RoundToEven(float64(h)*ratio[1])), 1)
	}
	x, y := (w-pw)/2, (h-ph)/2
	return image.Rect(x, y, x+pw, y+ph)
}

// RandomCrop keeps a random part of a given size.
type RandomCrop struct {
	Size        []int   `json:"size" is:"box"`                      // one for a square, or height and width
	Padding     []int   `json:"padding" default:"[0]" is:"padding"` // added first: as in Pad
	PadIfNeeded bool    `json:"pad_if_needed"`                      // add what a smaller image lacks, on both sides
	Fill        []int   `json:"fill" default:"[0]" is:"fill"`       // as in Pad
	Mode        PadMode `json:"padding_mode" choices:"constant edge reflect symmetric"`
}

// Build adds the border and draws the part.
func (t RandomCrop) Build(p *Plan) error {
	n, fill := t.Padding, fillBytes(t.Fill)
	if n[0]+n[1]+n[2]+n[3] > 0 {
		if err := p.Pad(n[0], n[1], n[2], n[3], t.Mode, fill); err != nil {
			return err
		}
	}
	in, h, w := p.Info(), t.Size[0], t.Size[1]
	if x, y := max(w-in.W, 0), max(h-in.H, 0); t.PadIfNeeded && x+y > 0 {
		if err := p.Pad(x, y, x, y, t.Mode, fill); err != nil {
			return err
		}
		in = p.Info()
	}
	if in.W < w || in.H < h {
		return fmt.Errorf("input of %dx%d pixels is smaller than %dx%d; resize first, or pad if needed", in.W, in.H, w, h)
	}
	y, x := p.Rand().IntN(in.H-h+1), p.Rand().IntN(in.W-w+1)
	if w == in.W && h == in.H {
		return nil // torchvision's does not cut boxes off either
	}
	return p.Crop(image.Rect(x, y, x+w, y+h))
}

func (RandomCrop) Randomized() {}
