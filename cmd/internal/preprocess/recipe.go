package preprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

const decodeMaxPixels = imagefile.DefaultMaxPixels

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
func (c Config) decoder() imagefile.Options {
	o := imagefile.Options{MaxPixels: c.MaxPixels, Orient: c.Orient, Alpha: c.Alpha}
	if c.Color == "gray" {
		o.Color = imagefile.Gray
	}
	return o
}

// recipe returns what the manifest says about how the dataset was made.
func (c Config) recipe(j *job) (*store.Recipe, error) {
	text, err := j.transforms()
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	if !c.KeepEncoded && slices.ContainsFunc(j.source, source.Field.Image) {
		c = c.images()
	}
	return &store.Recipe{Program: program(), Decoder: imagefile.Backend(), Transforms: text, Options: c.options()}, nil
}

// recipeOf returns the recipe of the job: of the run that it comes from, if that is another
// one. The caller may change it.
func (r *run) recipeOf(j *job) (*store.Recipe, error) {
	if r.recipe == nil {
		return r.config.recipe(j)
	}
	recipe := *r.recipe
	recipe.Options = maps.Clone(recipe.Options)
	return &recipe, nil
}

// options returns the recipe's flags with their values, those aside that say nothing.
func (c Config) options() map[string]string {
	all := map[string]string{
		"alpha": c.alpha(), "exif-orientation": choose(c.Orient, "applied", "ignored"),
		"sixteen-bit": choose(c.RefuseDeep, "refused", "high-byte"), "cmyk": choose(c.RefuseCMYK, "refused", "converted"),
		"color": c.Color, "normalize": c.Normalize.Name, "normalize-split": c.NormalizeSplit, "max-pixels": strconv.Itoa(c.MaxPixels), "on-error": choose(c.Skip, "skip", "fail"),
		"from": choose(c.From == "auto", "", c.From), "fields": c.Fields, "keep-encoded": choose(c.KeepEncoded, "true", ""),
		"jpeg-quality": choose(c.shrinks(), strconv.Itoa(c.quality()), ""), "larger-than": choose(c.LargerThan != 0, strconv.Itoa(c.LargerThan), ""),
		"split": splitText(c.Split), "stratify": choose(c.Stratify, "true", ""), "shuffle": c.Shuffle.String(),
		"dedup": choose(c.Dedup, "true", ""), "max-errors": c.MaxErrors.String(),
		"shard-size": choose(c.ShardBytes != 0 && c.format() == formatFlat, strconv.FormatInt(c.ShardBytes, 10), ""),
	}
	maps.Copy(all, c.Compress.options())
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	maps.Copy(all, fixedOptions)
	return all
}

// transforms returns what is done to the fields: a list in which every entry names its
// field, unless there is but one field with transforms and that is of images.
func (j *job) transforms() (json.RawMessage, error) {
	var lists []json.RawMessage
	for i, f := range j.fields {
		var p json.Marshaler
		switch f := f.(type) {
		case *imageField:
			p = f.pipeline
		case arrayField:
			p = f.pipeline
		case *shrinkField:
			p = f.pipeline
		default:
			continue
		}
		text, err := json.Marshal(p)
		if err == nil && j.several() {
			text, err = tagged(text, j.source[i].Name)
		}
		if err != nil {
			return nil, err
		}
		if inner := bytes.Trim(text, "[]"); len(inner) > 0 {
			lists = append(lists, text[1:len(text)-1])
		}
	}
	if lists == nil {
		return nil, nil
	}
	return append(append([]byte{'['}, bytes.Join(rawBytes(lists), []byte{','})...), ']'), nil
}

// several reports whether the entries of the recipe have to name their fields.
func (j *job) several() bool {
	images, arrays := 0, 0
	for i, f := range j.fields {
		switch f.(type) {
		case *imageField, *shrinkField:
			images++
		case arrayField:
			arrays++
		default:
			if j.source[i].Layout != "" || j.source[i].Image() {
				arrays++ // images that nothing is done to
			}
		}
	}
	return images != 1 || arrays > 0
}

// choose returns yes or no.
func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
