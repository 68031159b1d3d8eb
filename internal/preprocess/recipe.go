package preprocess

import (
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/internal/cli"
	"github.com/penstock/penstock/internal/decode"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

const decodeMaxPixels = decode.DefaultMaxPixels

// pipeline returns the transforms that the Config, which has the defaults of images, asks
// for, behind those given.
func (c Config) pipeline(ts ...transforms.Transform) (*transforms.Pipeline, error) {
	if c.Resize != nil {
		ts = append(ts, transforms.Resize{Size: c.Resize, Fit: c.Fit, Interpolation: c.Filter})
	}
	if c.Crop != nil {
		ts = append(ts, transforms.CenterCrop{Size: c.Crop})
	}
	layout := transforms.HWC
	if c.Layout == store.CHW {
		layout = transforms.CHW
	}
	ts = append(ts, transforms.ToLayout{Layout: layout})
	if c.DType != tensor.Uint8 {
		ts = append(ts, transforms.ConvertDType{DType: c.DType})
		if !c.Normalize.none() && !c.Normalize.Dataset {
			ts = append(ts, transforms.Normalize{Mean: c.Normalize.Mean, Std: c.Normalize.Std})
		}
	}
	return transforms.Compose(ts...)
}

// decoder returns the options of the decoders.
func (c Config) decoder() decode.Options {
	o := decode.Options{MaxPixels: c.MaxPixels, Orient: c.Orient}
	if c.Color == "gray" {
		o.Color = decode.Gray
	}
	return o
}

// recipe returns what the manifest says about how the dataset was made.
func (c Config) recipe(j *job) (*store.Recipe, error) {
	text, err := j.transforms()
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	c = c.images()
	return &store.Recipe{
		Program: "penstock " + cli.Version(), Decoder: decode.Backend(), Transforms: text,
		Options: map[string]string{
			"alpha": choose(c.RefuseAlpha, "refused", "dropped"), "exif-orientation": choose(c.Orient, "applied", "ignored"),
			"icc-profile": "ignored", "frame": "first", "sixteen-bit": choose(c.RefuseDeep, "refused", "high-byte"),
			"cmyk":  choose(c.RefuseCMYK, "refused", "converted"),
			"color": c.Color, "normalize": c.Normalize.Name, "max-pixels": fmt.Sprint(c.MaxPixels), "on-error": choose(c.Skip, "skip", "fail"),
		},
	}, nil
}

// transforms returns what is done to the images, nothing where there are none.
func (j *job) transforms() (json.RawMessage, error) {
	for _, f := range j.fields {
		if image, ok := f.(*imageField); ok {
			return json.Marshal(image.pipeline)
		}
	}
	return nil, nil
}

// choose returns yes or no.
func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
