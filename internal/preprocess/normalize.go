package preprocess

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/penstock/penstock/store"
)

// Normalize says what becomes of the numbers x/255. The zero value is no normalisation.
type Normalize struct {
	Name    string    // as it was asked for: "" or "none", "dataset", "imagenet", ..., or the numbers
	Dataset bool      // mean and deviation of the dataset itself
	Mean    []float64 // else these, one a channel or one for all
	Std     []float64
}

// presets are the figures that published models were trained with.
var presets = map[string]Normalize{
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

// ParseNormalize reads none, dataset, imagenet, inception, clip, or MEAN/STD such as
// 0.5,0.5,0.5/0.25,0.25,0.25, in units of x/255.
func ParseNormalize(text string) (Normalize, error) {
	if n, ok := presets[text]; ok {
		n.Name = text
		return n, nil
	}
	switch text {
	case "none", "":
		return Normalize{Name: "none"}, nil
	case "dataset":
		return Normalize{Name: text, Dataset: true}, nil
	}
	mean, std, ok := strings.Cut(text, "/")
	if !ok {
		return Normalize{}, fmt.Errorf("%q is none of none, imagenet, dataset, inception, clip, MEAN/STD (such as 0.5,0.5,0.5/0.25,0.25,0.25)", text)
	}
	return parseMeanStd(text, mean, std)
}

func parseMeanStd(text, mean, std string) (n Normalize, err error) {
	n.Name = text
	if n.Mean, err = parseNumbers(mean); err != nil {
		return Normalize{}, fmt.Errorf("mean %w", err)
	}
	if n.Std, err = parseNumbers(std); err != nil {
		return Normalize{}, fmt.Errorf("deviation %w", err)
	}
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

// String returns what ParseNormalize read.
func (n Normalize) String() string { return n.Name }

// none reports that nothing was asked for.
func (n Normalize) none() bool { return !n.Dataset && n.Mean == nil }

// field returns the normalisation of a field of so many channels. Without any it is the
// identity on x/255.
func (n Normalize) field(channels int, applied bool) *store.Normalization {
	f := &store.Normalization{Applied: applied, Scale: 255}
	for c := range channels {
		mean, std := 0.0, 1.0
		if !n.none() {
			mean, std = n.Mean[c%len(n.Mean)], n.Std[c%len(n.Std)]
		}
		f.Mean, f.Std = append(f.Mean, mean), append(f.Std, std)
	}
	return f
}
