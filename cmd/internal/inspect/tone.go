package inspect

import (
	"context"
	"fmt"
	"math"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// tone turns a stored value of a channel into a brightness: value*gain[c] + offset[c], 0 black
// and 255 white.
type tone struct {
	gain, offset []float64
	text         string // says what was done
	plain        bool   // nothing that the reader of the picture has to know
}

func (t tone) brightness(v float64, c int) uint8 {
	b := math.Round(float64(v*t.gain[c]) + t.offset[c])
	switch {
	case !(b > 0): // NaN, too
		return 0
	case b > 255:
		return 255
	}
	return uint8(b)
}

// linear returns the tone that makes low black and high white in each of n channels.
func linear(n int, low, high float64, text string) tone {
	gain := 1.0
	if high > low {
		gain = 255 / (high - low)
	}
	t := tone{text: text}
	for range n {
		t.gain, t.offset = append(t.gain, gain), append(t.offset, -low*gain)
	}
	return t
}

// undo returns the tone that takes an applied normalisation back.
func undo(n *store.Normalization) tone {
	t := tone{text: "normalisation undone"}
	white := 255 / n.Scale
	for c := range n.Mean {
		t.gain = append(t.gain, n.Std[c]*n.Scale*white)
		t.offset = append(t.offset, n.Mean[c]*n.Scale*white)
	}
	return t
}

// tone chooses how values are shown: bytes as they are, normalised values as they were
// before, numbers between 0 and 1 as shares of white, and anything else stretched over the
// range that it has.
func (s *shoot) tone(ctx context.Context, records []int) (tone, error) {
	c, norm := s.planes.c, s.images.Normalization
	switch {
	case s.images.Content == store.Image:
		return tone{text: "decoded", plain: true}, nil
	case s.images.DType == tensor.Uint8:
		t := linear(c, 0, 255, "bytes as stored")
		t.plain = true
		return t, nil
	case s.images.DType == tensor.Bool:
		return linear(c, 0, 1, "false black, true white"), nil
	case norm != nil && norm.Applied && norm.Scale > 0:
		return undo(norm), nil
	}
	low, high, err := s.limits(ctx, records)
	if err != nil {
		return tone{}, err
	}
	if s.images.DType.IsFloat() && low >= 0 && high <= 1 && high > 0.5 {
		return linear(c, 0, 1, "0 black, 1 white"), nil
	}
	return linear(c, low, high, fmt.Sprintf("stretched: %s black, %s white", limit(low), limit(high))), nil
}

// limits returns the smallest and the largest finite value: of the whole field where the
// manifest says it, else of the records.
func (s *shoot) limits(ctx context.Context, records []int) (low, high float64, err error) {
	if m := s.ds.Manifest(); m != nil && m.Statistics[s.images.Name] != nil {
		st := m.Statistics[s.images.Name]
		return st.Min, st.Max, nil
	}
	low, high = math.Inf(1), math.Inf(-1)
	record := aligned(s.images.RecordBytes())
	for _, r := range records {
		if err := s.ds.Gather(ctx, s.images.Name, []int{r}, record); err != nil {
			return 0, 0, err
		}
		for _, v := range floats(tensor.Of(s.images.Spec, 1, record)) {
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
