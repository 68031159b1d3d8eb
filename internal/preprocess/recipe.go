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

// Names of the fields of a dataset of images.
const (
	imagesField = "images"
	labelsField = "labels"
)

// pipeline returns the transforms that the Config asks for.
func (c Config) pipeline() (*transforms.Pipeline, error) {
	var ts []transforms.Transform
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
	o := decode.Options{MaxPixels: c.MaxPixels}
	if c.Color == "gray" {
		o.Color = decode.Gray
	}
	return o
}

// schema returns the fields of a dataset whose images come out of the pipeline like that.
func (c Config) schema(images transforms.Info, classes []string) store.Schema {
	f := store.NewField(imagesField, c.DType, images.Shape()...)
	f.Layout = c.Layout
	switch {
	case c.DType != tensor.Uint8:
		f.Normalization = c.Normalize.field(images.C, true)
	case c.Normalize.Mean != nil:
		f.Normalization = c.Normalize.field(images.C, false)
	}
	s := store.Schema{Fields: []store.Field{f}}
	if classes != nil {
		l := store.NewField(labelsField, tensor.Int64)
		l.Classes = classes
		s.Fields = append(s.Fields, l)
	}
	return s
}

// recipe returns what the manifest says about how the dataset was made.
func (c Config) recipe(p *transforms.Pipeline) (*store.Recipe, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	return &store.Recipe{
		Program: "penstock " + cli.Version(), Decoder: decode.Backend(), Transforms: text,
		Options: map[string]string{
			"alpha": "dropped", "exif-orientation": "ignored", "icc-profile": "ignored", "frame": "first",
			"color": c.Color, "normalize": c.Normalize.Name, "max-pixels": fmt.Sprint(c.MaxPixels), "on-error": c.onError(),
		},
	}, nil
}

func (c Config) onError() string {
	if c.Skip {
		return "skip"
	}
	return "fail"
}
