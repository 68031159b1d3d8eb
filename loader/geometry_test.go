package loader_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// New refuses to move images away from boxes and masks, unless the caller says that they do not lie on them.
func TestImagesDoNotLeaveBoxesBehind(t *testing.T) {
	flip, err := transforms.Compose(transforms.RandomHorizontalFlip{})
	require.NoError(t, err)
	jitter, err := transforms.Compose(transforms.ColorJitter{Brightness: []float64{0.5}}, transforms.RandomHorizontalFlip{})
	require.NoError(t, err)
	src := newMemorySource(4, 4)
	pixels := func(name string, channels int) tensor.Spec {
		return tensor.Spec{Name: name, DType: tensor.Uint8, Shape: tensor.Shape{4, 5, channels}}
	}
	src.specs = []tensor.Spec{pixels("images", 3), pixels("mask", 1), {Name: "boxes", DType: tensor.Float32, Shape: tensor.Shape{4}}}
	images := func(p *transforms.Pipeline) loader.Images { return loader.Images{Pipeline: p} }
	for _, c := range []struct {
		fields      []string
		independent string
		transforms  map[string]loader.Transform
		want        string
	}{
		{fields: []string{"images"}, transforms: map[string]loader.Transform{"images": images(flip)}},
		{fields: []string{"images", "boxes"}, transforms: map[string]loader.Transform{"images": images(flip)}, want: `the field "boxes" (float32[4]) may be boxes or points`},
		{fields: []string{"images", "boxes"}, independent: "boxes", transforms: map[string]loader.Transform{"images": images(flip)}},
		{fields: []string{"images", "mask"}, transforms: map[string]loader.Transform{"images": images(flip)}, want: `the field "mask" stays where it is`},
		{fields: []string{"images", "mask"}, transforms: map[string]loader.Transform{"images": images(jitter), "mask": images(flip)}, want: `the field "mask" draws other random numbers`},
		{fields: []string{"images", "mask"}, transforms: map[string]loader.Transform{"images": images(flip), "mask": images(flip)}},
		{fields: []string{"images"}, independent: "mask", want: `Contents names the field "mask", which batches do not have`},
	} {
		opts := loader.Options{BatchSize: 2, Fields: c.fields, Transforms: c.transforms}
		if c.independent != "" {
			opts.Contents = map[string]string{c.independent: loader.Independent}
		}
		ld, err := loader.New(src, opts)
		if err == nil {
			err = ld.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, independent %q: %v, want %q", c.fields, c.independent, err, c.want)
		}
	}
}
