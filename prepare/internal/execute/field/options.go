package field

import (
	"encoding/json"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Options say what is done to the values of samples. The tag recipe names the flag of an option that recipes have.
type Options struct {
	Resize    []int  // one length, or height and width; nil leaves sizes as they are
	Fit       string // shorter, longer, exact, cover, pad; "" is shorter for one length, exact for two
	Crop      []int  // center crop: one length for a square, or height and width; nil for none
	Filter    string // nearest, box, bilinear, hamming, bicubic, lanczos
	PassOrder string // auto, horizontal; see transforms.Resize.PassOrder

	// Of these the zero value is rgb, CHW, uint8 and none for files of images, and leaves
	// arrays of pixels as they are.
	Color     string       `recipe:"color"` // "rgb" or "gray"
	Layout    string       // tensor.CHW or tensor.HWC
	DType     tensor.DType `json:",omitzero"` // the zero value has no text
	Normalize Normalize    `recipe:"normalize"`

	Rules       Rules
	MaxPixels   int  `recipe:"max-pixels"`   // larger images are refused from their header
	KeepEncoded bool `recipe:"keep-encoded"` // keep files of images, whose length varies: Resize makes only large ones smaller
	Decode      bool // make pixels of images also where a dataset is copied that holds them as files
	Quality     int  // of JPEGs that are made then, 1 to 100; 0 is 90
	LargerThan  int  `recipe:"larger-than"` // pixels of the side that Fit names; smaller files stay; 0 is the size of Resize

	// Independent has the fields of the source that do not lie on what its images show, so that they need not follow
	// these: see package geometry.
	Independent []string `recipe:"independent"`

	// Transforms is a recipe that replaces Resize, Fit, Crop, Filter, PassOrder, Layout and DType, see
	// package transforms; an entry may name its "field". nil: there is none.
	Transforms json.RawMessage `json:",omitempty"`

	// Own has the arrays that get mean and deviation of the dataset, once these are known.
	Own map[string]transforms.Standardize `json:"-"`
}

// DefaultOptions returns what the command does without flags.
func DefaultOptions() Options {
	return Options{Filter: "bilinear", PassOrder: "auto", MaxPixels: imagefile.DefaultMaxPixels}
}

// WithImageDefaults returns the options with what files of images have by default.
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

// ChangesPixels reports whether anything was asked for that changes pixels.
func (c Options) ChangesPixels() bool {
	return c.Resize != nil || c.Crop != nil || c.Color != "" || c.Layout != "" || c.DType != tensor.Invalid ||
		!c.Normalize.None()
}

// Channels returns how many the records have.
func (c Options) Channels() int {
	if c.Color == "gray" {
		return 1
	}
	return 3
}

// Pipeline returns the transforms that the options, which have the defaults of images, asks
// for, after those given.
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

// decoder returns the options of the decoders.
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
