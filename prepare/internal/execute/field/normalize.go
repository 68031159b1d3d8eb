package field

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/store"
)

// Normalize says how pixels are normalized, in units of x/255. The zero value does not normalize.
type Normalize struct {
	Name    string            // as given: "" or "none", "dataset", "imagenet", ..., or the numbers
	Dataset bool              // by mean and deviation of the dataset itself
	Fields  []NormalizedField // with Dataset: these arrays; nil for images, or without images for all arrays of floats
	Mean    []float64         // otherwise: one for each channel, or one for all
	Std     []float64
}

// NormalizedField is an array that is normalized by its own mean and deviation.
type NormalizedField struct {
	Field string
	Axis  int  // axis of a record with a mean and deviation for each position
	Set   bool // Axis is given; otherwise a vector has a pair for each element, and any other array one pair
}

// Presets are the means and deviations of published models.
var Presets = map[string]Normalize{
	"imagenet": {
		Mean: []float64{0.485, 0.456, 0.406},
		Std:  []float64{0.229, 0.224, 0.225},
	},
	"inception": {
		Mean: []float64{0.5, 0.5, 0.5},
		Std:  []float64{0.5, 0.5, 0.5},
	},
	"clip": {
		Mean: []float64{0.48145466, 0.4578275, 0.40821073},
		Std:  []float64{0.26862954, 0.26130258, 0.27577711},
	},
}

// ParseNormalize reads none, dataset, dataset:FIELD@AXIS,..., imagenet, inception, clip, or MEAN/STD such as
// 0.5,0.5,0.5/0.25,0.25,0.25 in units of x/255.
func ParseNormalize(text string) (Normalize, error) {
	if n, ok := Presets[text]; ok {
		n.Name = text
		return n, nil
	}
	switch text {
	case "none", "":
		return Normalize{Name: "none"}, nil
	case "dataset":
		return Normalize{Name: text, Dataset: true}, nil
	}
	if fields, ok := strings.CutPrefix(text, "dataset:"); ok {
		return parseNormalized(text, fields)
	}
	mean, std, ok := strings.Cut(text, "/")
	if !ok {
		known := []string{"none", "imagenet", "dataset", "inception", "clip"}
		return Normalize{}, fmt.Errorf("%s; or MEAN/STD, such as 0.5,0.5,0.5/0.25,0.25,0.25", suggest.OneOf(text, known))
	}
	return parseMeanStd(text, mean, std)
}

func parseNormalized(text, fields string) (n Normalize, err error) {
	n = Normalize{Name: text, Dataset: true}
	for _, part := range strings.Split(fields, ",") {
		name, axis, set := strings.Cut(strings.TrimSpace(part), "@")
		f := NormalizedField{Field: name, Set: set}
		if set {
			f.Axis, err = strconv.Atoi(axis)
		}
		if err != nil || f.Axis < 0 || name == "" {
			return Normalize{}, fmt.Errorf("%q is not FIELD or FIELD@AXIS, such as x or x@0", part)
		}
		n.Fields = append(n.Fields, f)
	}
	return n, nil
}

func parseMeanStd(text, mean, std string) (n Normalize, err error) {
	n.Name = text
	if n.Mean, err = parseNumbers(mean); err != nil {
		return Normalize{}, fmt.Errorf("mean %w", err)
	}
	if n.Std, err = parseNumbers(std); err != nil {
		return Normalize{}, fmt.Errorf("deviation %w", err)
	}
	// One pair for all channels, or a pair for each.
	if len(n.Mean) != len(n.Std) || len(n.Mean) != 1 && len(n.Mean) != 3 {
		return Normalize{}, fmt.Errorf("%d means and %d deviations; give 1 or 3 of each", len(n.Mean), len(n.Std))
	}
	for _, s := range n.Std {
		if s <= 0 {
			return Normalize{}, fmt.Errorf("deviation %v must be positive", s)
		}
	}
	return n, nil
}

func parseNumbers(text string) (list []float64, err error) {
	for _, t := range strings.Split(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%q is not a number", t)
		}
		list = append(list, x)
	}
	return list, nil
}

// String returns the text that ParseNormalize reads.
func (n Normalize) String() string { return n.Name }

// None reports whether images are not normalized.
func (n Normalize) None() bool { return !n.OfImages() && n.Mean == nil }

// OfImages reports whether images are normalized by mean and deviation of the dataset.
func (n Normalize) OfImages() bool { return n.Dataset && n.Fields == nil }

// Field returns the normalization that a reader is to apply to a field with a number of channels. Without a
// normalization it only divides by 255. The records are unchanged; see [Normalize.Applied].
func (n Normalize) Field(channels int) *store.Normalization {
	f := &store.Normalization{Scale: 255}
	for c := range channels {
		mean, std := 0.0, 1.0
		if !n.None() {
			mean, std = n.Mean[c%len(n.Mean)], n.Std[c%len(n.Std)]
		}
		f.Mean, f.Std = append(f.Mean, mean), append(f.Std, std)
	}
	return f
}

// Applied is Field for records that are normalized already.
func (n Normalize) Applied(channels int) *store.Normalization {
	f := n.Field(channels)
	f.Applied = true
	return f
}
