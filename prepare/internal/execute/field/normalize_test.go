package field

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/tensor"
)

func TestParseNormalize(t *testing.T) {
	n, err := ParseNormalize("0.1,0.2, 0.3/1,2,3")
	if err != nil || !slices.Equal(n.Mean, []float64{0.1, 0.2, 0.3}) || !slices.Equal(n.Std, []float64{1, 2, 3}) {
		t.Errorf("%+v, %v", n, err)
	}
	for _, name := range []string{"imagenet", "clip", "inception"} {
		if n, err := ParseNormalize(name); err != nil || len(n.Mean) != 3 || len(n.Std) != 3 || n.String() != name {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

func FuzzParseNormalize(f *testing.F) {
	for _, s := range []string{"imagenet", "0.5/0.5", "1,2,3/4,5,6", "/", "nan/1", "1e999/1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNormalize(text)
		if err == nil && len(n.Mean) > 0 {
			c := DefaultOptions()
			c.DType, c.Normalize = tensor.Float32, n
			if _, err := c.Pipeline(); err != nil && !strings.Contains(err.Error(), "positive") {
				t.Errorf("%q is accepted, but then: %v", text, err)
			}
		}
	})
}
