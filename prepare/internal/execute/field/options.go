package field

import (
	"encoding/json"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Options says what is done to the values of samples. The tag recipe is the flag of an option that is recorded
// under that name.
type Options struct {
	Resize    []int  // one length, or height and width; nil keeps sizes
	Fit       string // shorter, longer, exact, cover, pad; "" is shorter for one length, exact for two
	Crop      []int  // center crop: the side of a square, or height and width; nil for none
	Filter    string // nearest, box, bilinear, hamming, bicubic, lanczos
	PassOrder string // auto, horizontal; see transforms.Resize.PassOrder

	// For image files, the zero values mean rgb, CHW, uint8 and none; arrays of pixels stay as they are.
	Color     string       `recipe:"color"` // "rgb" or "gray"
	Layout    string       // tensor.CHW or tensor.HWC
	DType     tensor.DType `json:",omitzero"` // the zero value has no text
	Normalize Normalize    `recipe:"normalize"`

	Rules       Rules
	MaxPixels   int  `recipe:"max-pixels"`   // a larger image is refused from its header, before memory is allocated for it
	KeepEncoded bool `recipe:"keep-encoded"` // store image files; Resize then only makes large ones smaller
	Decode      bool // make pixels even if the source is a dataset that stores files
	Quality     int  // of the JPEGs that are made smaller, 1 to 100; 0 is 90
	LargerThan  int  `recipe:"larger-than"` // files of at most so many pixels on Fit's side stay; 0: the size of Resize

	// Independent lists the fields of the source that are not on an image, so that they need not move with it; see
	// package geometry.
	Independent []string `recipe:"independent"`

	// Transforms is a recipe that replaces Resize, Fit, Crop, Filter, PassOrder, Layout and DType, see package
	// transforms. An entry may name its "field". nil: no such recipe.
	Transforms json.RawMessage `json:",omitempty"`

	// Own has the arrays that are standardized by mean and deviation of the dataset, once a first pass has measured
	// them.
	Own map[string]transforms.Standardize `json:"-"`
}

// DefaultOptions returns the options of preprocess without flags.
func DefaultOptions() Options {
	return Options{Filter: "bilinear", PassOrder: "auto", MaxPixels: imagefile.DefaultMaxPixels}
}

// WithImageDefaults returns the options with the defaults of image files filled in.
func (c Options) WithImageDefaults() Options {
	if c.Color == "" {
		c.Color = "rgb"
	}
	if c.Layout == "" {
		c.Layout = tensor.CHW
	}
	if c.DType == tensor.Invalid {
		c.DType = tensor.Uint8
	}
	return c
}

// ChangesPixels reports whether some flag changes pixels.
func (c Options) ChangesPixels() bool {
	return c.Resize != nil || c.Crop != nil || c.Color != "" || c.Layout != "" || c.DType != tensor.Invalid ||
		!c.Normalize.None()
}

// Channels returns the number of channels of the records.
func (c Options) Channels() int {
	if c.Color == "gray" {
		return 1
	}
	return 3
}

// Pipeline returns the transforms that the options ask for, after ts. The options must have the defaults of images.
func (c Options) Pipeline(ts ...transforms.Transform) (*transforms.Pipeline, error) {
	if c.Resize != nil {
		ts = append(ts, transforms.Resize{Size: c.Resize, Fit: c.Fit, Interpolation: c.Filter, PassOrder: c.PassOrder})
	}
	if c.Crop != nil {
		ts = append(ts, transforms.CenterCrop{Size: c.Crop})
	}
	layout := transforms.HWC
	if c.Layout == tensor.CHW {
		layout = transforms.CHW
	}
	ts = append(ts, transforms.ToLayout{Layout: layout})
	if c.DType != tensor.Uint8 && c.DType != tensor.Uint16 { // which images of 16 bits have
		ts = append(ts, transforms.ConvertDType{DType: c.DType})
		if !c.Normalize.None() && !c.Normalize.Dataset {
			ts = append(ts, transforms.Normalize{Mean: c.Normalize.Mean, Std: c.Normalize.Std})
		}
	}
	return transforms.Compose(ts...)
}

// decoder returns the options of the decoders of images.
func (c Options) decoder() imagefile.Options {
	o := imagefile.Options{MaxPixels: c.MaxPixels, Orient: c.Rules.Orient, Alpha: c.Rules.Alpha}
	if !c.KeepEncoded { // the loader, which has no zstd, would have to open such a file
		o.Zstd = stream.Zstd
	}
	if c.Color == "gray" {
		o.Color = imagefile.Gray
	}
	return o
}
