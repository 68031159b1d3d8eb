package render

import (
	"context"
	"fmt"
	"math"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Brightness turns the stored value of a channel into a brightness, value*gain[c] + offset[c],
// where 0 is black and 255 white.
type Brightness struct {
	gain, offset []float64
	Text         string // says what was done to the values
	Plain        bool   // nothing was done that the reader of the picture has to know
}

// Value returns the brightness of value v in channel c, rounded and limited to [0, 255]. NaN is
// black.
func (t Brightness) Value(v float64, c int) uint8 {
	b := math.Round(float64(v*t.gain[c]) + t.offset[c])
	switch {
	case !(b > 0): // NaN, too
		return 0
	case b > 255:
		return 255
	}
	return uint8(b)
}

// linear returns the Brightness that shows low black and high white in each of n channels. If all
// values are equal, they are shown black.
func linear(n int, low, high float64, text string) Brightness {
	gain := 1.0
	if high > low {
		gain = 255 / (high - low)
	}
	t := Brightness{Text: text}
	for range n {
		t.gain, t.offset = append(t.gain, gain), append(t.offset, -low*gain)
	}
	return t
}

// undo returns the Brightness that undoes a normalization: x = (v*std + mean) * scale.
func undo(n *store.Normalization) Brightness {
	t := Brightness{Text: "normalization undone"}
	white := 255 / n.Scale
	for c := range n.Mean {
		t.gain = append(t.gain, n.Std[c]*n.Scale*white)
		t.offset = append(t.offset, n.Mean[c]*n.Scale*white)
	}
	return t
}

// BrightnessOf chooses how the values of a field are shown: bytes as they are, normalized values as
// they were before, floats between 0 and 1 as shares of white, and anything else stretched over its
// range. Floats whose largest value is at most 0.5 are stretched, too: as shares of white they
// would be dark.
func BrightnessOf(ctx context.Context, ds *mmapds.Dataset, f store.Field, p PixelLayout, records []int) (
	Brightness, error) {
	c, norm := p.C, f.Normalization
	switch {
	case f.Content == tensor.Image:
		return Brightness{Text: "decoded", Plain: true}, nil
	case f.DType == tensor.Uint8:
		t := linear(c, 0, 255, "bytes as stored")
		t.Plain = true
		return t, nil
	case f.DType == tensor.Bool:
		return linear(c, 0, 1, "false black, true white"), nil
	case norm != nil && norm.Applied && norm.Scale > 0:
		return undo(norm), nil
	}
	low, high, err := limitsOf(ctx, ds, f, records)
	if err != nil {
		return Brightness{}, err
	}
	if f.DType.IsFloat() && low >= 0 && high <= 1 && high > 0.5 {
		return linear(c, 0, 1, "0 black, 1 white"), nil
	}
	return linear(c, low, high, fmt.Sprintf("stretched: %s black, %s white", cli.Number(low), cli.Number(high))), nil
}

// limitsOf returns the smallest and the largest finite value: of the whole field if the manifest
// has statistics, otherwise of the given records. Without finite values, both are 0.
func limitsOf(ctx context.Context, ds *mmapds.Dataset, f store.Field, records []int) (low, high float64, err error) {
	if m := ds.Manifest(); m != nil && m.Statistics[f.Name] != nil {
		st := m.Statistics[f.Name]
		return st.Min, st.Max, nil
	}
	low, high = math.Inf(1), math.Inf(-1)
	record := dataset.Aligned(f.RecordBytes())
	for _, r := range records {
		if err := ds.Gather(ctx, f.Name, []int{r}, record); err != nil {
			return 0, 0, err
		}
		for _, v := range dataset.Floats(tensor.Of(f.Spec, 1, record)) {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low > high {
		low, high = 0, 0
	}
	return low, high, nil
}

// AfterPipeline returns how to show images after a pipeline. A Normalize in the pipeline is undone;
// without a Normalize, floats are taken for shares of white, as ConvertDType makes them.
func AfterPipeline(spec tensor.Spec, p *transforms.Pipeline) (PixelLayout, Brightness, error) {
	layout, err := PixelLayoutOf(store.Field{Spec: spec})
	if err != nil {
		return layout, Brightness{}, err
	}
	for _, t := range p.Transforms() {
		if n, ok := t.(transforms.Normalize); ok {
			norm := store.Normalization{Mean: repeated(n.Mean, layout.C), Std: repeated(n.Std, layout.C), Scale: 1}
			return layout, undo(&norm), nil
		}
	}
	if spec.DType == tensor.Uint8 {
		return layout, linear(layout.C, 0, 255, "after the pipeline"), nil
	}
	return layout, linear(layout.C, 0, 1, "0 black, 1 white"), nil
}

// repeated returns one number for each of n channels: a list of one number is for all channels.
func repeated(list []float64, n int) []float64 {
	for len(list) < n {
		list = append(list[:len(list):len(list)], list[0])
	}
	return list
}
