package transforms

import (
	"fmt"
	"image"
	"math"

	"github.com/penstock/penstock/internal/kernel"
)

func init() {
	Register[Img2Dataset]()
	Register[ResizeKeepRatio]()
	Register[CenterCropOrPad]()
}

// The statistics that pretrained models expect, for Normalize.
var (
	ImageNet  = Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}}
	Inception = Normalize{Mean: []float64{.5, .5, .5}, Std: []float64{.5, .5, .5}}
	CLIP      = Normalize{Mean: []float64{.48145466, .4578275, .40821073}, Std: []float64{.26862954, .26130258, .27577711}}
)

// TimmEval returns the transforms with which timm prepares the images that a model is evaluated
// on, up to its conversion to numbers: for crop mode "center" (or "") the shorter side, for
// "squash" both sides, for "border" the longer side become floor(size/cropPct), and a square of
// size is cut from the center, in mode "border" with the mean color of ImageNet around it.
// cropPct is above 0 and at most 1, timm's default 0.875; interpolation "" means bilinear. For
// sizes that are not square, and other means, use ResizeKeepRatio and CenterCropOrPad.
func TimmEval(size int, cropPct float64, mode, interpolation string) ([]Transform, error) {
	if size <= 0 || !(cropPct > 0 && cropPct <= 1) {
		return nil, fmt.Errorf("transforms: size %d must be positive, cropPct %v above 0 and at most 1", size, cropPct)
	}
	scaled := int(math.Floor(float64(size) / cropPct))
	crop := CenterCrop{Size: []int{size}}
	switch mode {
	case "", "center":
		return []Transform{Resize{Size: []int{scaled}, Interpolation: interpolation}, crop}, nil
	case "squash":
		return []Transform{Resize{Size: []int{scaled, scaled}, Interpolation: interpolation}, crop}, nil
	case "border":
		return []Transform{
			ResizeKeepRatio{Size: []int{scaled}, Longest: 1, Interpolation: interpolation},
			CenterCropOrPad{Size: crop.Size, Fill: []int{124, 116, 104}},
		}, nil
	}
	return nil, fmt.Errorf("transforms: unknown crop mode %q; known are center, squash, border", mode)
}

// Img2Dataset resizes as the program img2dataset does, with its names, defaults and geometry,
// with Pillow's filters, where img2dataset has OpenCV's. The names of OpenCV's filters are
// accepted: linear is bilinear, cubic is bicubic, lanczos4 is lanczos, and area is box, which
// is nearly the same.
type Img2Dataset struct {
	ImageSize *int `json:"image_size" default:"256" in:"[1,1048576]"`
	// see below
	Mode string `json:"resize_mode" default:"border" is:"img2dataset"`
	// leave alone, whatever the mode, what is not larger
	OnlyIfBigger bool `json:"resize_only_if_bigger"`
	// as in Resize
	Downscale string `json:"downscale_interpolation" default:"box" is:"opencv"`
	// as in Resize
	Upscale string `json:"upscale_interpolation" default:"lanczos" is:"opencv"`
	// as in Resize
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
}

// Values of Mode:
//
//	no                  nothing
//	fixed               both sides become ImageSize
//	keep_ratio          the shorter side becomes ImageSize
//	center_crop         the same, then a square from the center
//	keep_ratio_largest  the longer side becomes ImageSize
//	border              the same, then white around it to a square
var img2datasetModes = []string{"no", "fixed", "keep_ratio", "center_crop", "keep_ratio_largest", "border"}

// openCVFilters maps OpenCV's names of filters to Pillow's.
var openCVFilters = map[string]string{"linear": "bilinear", "cubic": "bicubic", "lanczos4": "lanczos", "area": "box"}

// Build adds the resize, and the crop or border.
func (t Img2Dataset) Build(p *Plan) error {
	in, n := p.Info(), *t.ImageSize
	side := min(in.W, in.H)
	if t.Mode == "border" || t.Mode == "keep_ratio_largest" || t.Mode == "fixed" {
		side = max(in.W, in.H)
	}
	if t.Mode == "no" || t.OnlyIfBigger && side <= n {
		return p.bytes()
	}
	if err := t.resize(p, side); err != nil {
		return err
	}
	return t.finish(p)
}

// resize scales the image so that side, its shorter or its longer side, becomes ImageSize.
func (t Img2Dataset) resize(p *Plan, side int) error {
	name := t.Upscale
	if side > *t.ImageSize {
		name = t.Downscale
	}
	f, err := kernel.ParseFilter(name)
	if err != nil {
		return err
	}
	in, n := p.Info(), *t.ImageSize
	if t.Mode == "fixed" {
		return resizeBy(p, t.PassOrder, n, n, f)
	}
	scale := float64(n) / float64(side)
	return resizeBy(p, t.PassOrder, int(math.RoundToEven(float64(in.W)*scale)), int(math.RoundToEven(float64(in.H)*scale)),
		f)
}

// finish adds the crop or border of the mode after the resize. center_crop rounds its center down,
// as img2dataset does; CenterCrop would round as torchvision does.
func (t Img2Dataset) finish(p *Plan) error {
	in, n := p.Info(), *t.ImageSize
	switch t.Mode {
	case "center_crop":
		x, y := (in.W-n)/2, (in.H-n)/2
		return p.Crop(image.Rect(x, y, x+n, y+n))
	case "border":
		return cropCenter(p, n, n, PadConstant, [3]byte{255, 255, 255})
	}
	return nil
}

// ResizeKeepRatio resizes an image without distortion so that it covers a size, or fits into
// it, or in between: timm's, without its random factors.
type ResizeKeepRatio struct {
	// one for a square, or height and width
	Size []int `json:"size" is:"box"`
	// 0 covers Size, 1 fits into it
	Longest float64 `json:"longest" in:"[0,1]"`
	// as in Resize
	Interpolation string `json:"interpolation" default:"bilinear" is:"filter"`
	// as in Resize
	PassOrder string `json:"pass_order" default:"auto" choices:"auto horizontal"`
}

// Build adds the resize.
func (t ResizeKeepRatio) Build(p *Plan) error {
	f, err := kernel.ParseFilter(t.Interpolation)
	if err != nil {
		return err
	}
	w, h := t.scaled(p.info.W, p.info.H)
	return resizeBy(p, t.PassOrder, w, h, f)
}

// scaled is timm's ResizeKeepRatio.get_params.
func (t ResizeKeepRatio) scaled(w, h int) (int, int) {
	down, across := float64(h)/float64(t.Size[0]), float64(w)/float64(t.Size[1])
	ratio := float64(max(down, across)*t.Longest) + float64(min(down, across)*(1-t.Longest))
	return int(math.RoundToEven(float64(w) / ratio)), int(math.RoundToEven(float64(h) / ratio))
}

// CenterCropOrPad is CenterCrop with a border of the caller's choice where the image is smaller, as
// in timm.
type CenterCropOrPad struct {
	Size []int   `json:"size" is:"box"`                // pixels: one for a square, or height and width
	Fill []int   `json:"fill" default:"[0]" is:"fill"` // with PadConstant, as in Pad
	Mode PadMode `json:"padding_mode" choices:"constant edge reflect symmetric"`
}

// Build adds a crop along the axes that are too long and a border along those too short.
func (t CenterCropOrPad) Build(p *Plan) error {
	return cropCenter(p, t.Size[1], t.Size[0], t.Mode, fillBytes(t.Fill))
}
