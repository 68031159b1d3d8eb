package feed

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Images stay bytes if the client can compute the pipeline's result from them.
func TestAsBytes(t *testing.T) {
	f := store.NewField("images", tensor.Uint8, 4, 5, 3)
	f.Layout = tensor.HWC
	f.Normalization = &store.Normalization{Scale: 255, Mean: []float64{0.5, 0.4, 0.3}, Std: []float64{0.2, 0.3, 0.4}}
	const crop, flip, normalize = `{"op":"CenterCrop","size":[2,3]}`, `{"op":"RandomHorizontalFlip"}`, `{"op":"Normalize","mean":[0.5],"std":[0.25]}`
	for _, c := range []struct{ recipe, want string }{
		{`[{"op":"ToTensor"}]`, "uint8[4 5 3] 255 [0] [1] float32 CHW"},
		{`[` + flip + `,{"op":"ToTensor"},{"op":"Normalize"}]`, "uint8[4 5 3] 255 [0.5 0.4 0.3] [0.2 0.3 0.4] float32 CHW"},
		{`[{"op":"ToImage"},` + crop + `,{"op":"ToDtype","dtype":"float16","scale":true},` + normalize + `]`, "uint8[3 2 3] 255 [0.5] [0.25] float16 CHW"},
		{`[` + crop + `,{"op":"ToDtype","dtype":"float32"},` + normalize + `,{"op":"ToImage"}]`, "uint8[2 3 3] 1 [0.5] [0.25] float32 CHW"},
		{`[{"op":"ConvertImageDtype"}]`, "uint8[4 5 3] 255 [0] [1] float32 HWC"},
		{`[` + flip + `]`, "uint8[4 5 3]"},
		{`[{"op":"ToTensor"},{"op":"RandomErasing"}]`, "float32[3 4 5]"},
	} {
		o := Options{AsBytes: true, BatchTransforms: []batchTransform{{Op: "LabelSmoothing"}}}
		m, err := o.makeField(f, []byte(c.recipe), nil)
		if err != nil {
			t.Fatal(c.recipe, err)
		}
		got := fmt.Sprintf("%v%v", m.field.DType, []int(m.field.Shape))
		if n := m.field.Normalization; n != nil {
			got += fmt.Sprint(" ", n.Scale, " ", n.Mean, " ", n.Std, " ", m.finish.DType, " ", m.finish.Layout)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.recipe, got, c.want)
		}
		o.OnError = "blank" // zeros after the pipeline, as without a client that ends it
		if m, err = o.makeField(f, []byte(c.recipe), nil); err != nil || m.finish != nil || m.field.Normalization != nil {
			t.Errorf("%s: %+v, %v, with blank records", c.recipe, m, err)
		}
		o.OnError = ""
		o.BatchTransforms[0].Op = "MixUp" // which needs floats
		if m, err = o.makeField(f, []byte(c.recipe), nil); err != nil || m.finish != nil || m.field.Normalization != nil {
			t.Errorf("%s: %+v, %v, before MixUp", c.recipe, m, err)
		}
	}
}

// One pipeline for all images changes the classes of a mask, and boxes do not follow one.
func TestGeometryOfRecords(t *testing.T) {
	image := func(name string, shape ...int) store.Field {
		f := store.NewField(name, tensor.Uint8, shape...)
		f.Layout = tensor.HWC
		return f
	}
	fields := []store.Field{image("images", 8, 9, 3), image("mask", 8, 9, 1), store.NewRagged("boxes", tensor.Float32, 4)}
	arrays := []store.Field{store.NewField("a", tensor.Uint8, 8, 9, 3), store.NewField("b", tensor.Uint8, 1, 8, 9),
		store.NewField("both", tensor.Uint8, 3, 9, 3), store.NewField("gray", tensor.Uint8, 8, 9), store.NewField("flat", tensor.Uint8, 8)}
	const flip, jitter = `{"op":"RandomHorizontalFlip"}`, `{"op":"ColorJitter","brightness":0.5}`
	for _, c := range []struct {
		options string
		fields  []store.Field
		want    string
	}{
		{`{"transforms":{"":[` + flip + `]}}`, fields[:2], ""},
		{`{"transforms":{"":[` + flip + `,` + jitter + `]}}`, fields[:1], ""},
		{`{"transforms":{"":[` + flip + `,` + jitter + `]}}`, fields[:2], `the field "mask" may be a mask, and ColorJitter would make other classes of its values; if so, say contents={"mask": "mask"}; or, if it is a picture: independent=["mask"]`},
		{`{"transforms":{"":[` + flip + `,` + jitter + `]},"contents":{"mask":"independent"}}`, fields[:2], ""},
		{`{"transforms":{"images":[` + flip + `,` + jitter + `],"mask":[` + flip + `]}}`, fields[:2], ""},
		{`{"transforms":{"images":[` + jitter + `,` + flip + `],"mask":[` + flip + `]}}`, fields[:2], `the field "mask" draws other random numbers`},
		{`{"transforms":{"images":[` + flip + `]}}`, fields, `the field "boxes" (float32[*,4]) may be boxes or points in it, which would stay where they are; if so, say contents={"boxes": "boxes"}; or, if its numbers are not places in the image: independent=["boxes"]`},
		{`{"transforms":{"":[` + flip + `,` + jitter + `]},"contents":{"boxes":"boxes","mask":"mask"}}`, fields, ""},
		{`{"contents":{"boxs":"boxes"}}`, fields, `contents: there is no field "boxs"; did you mean "boxes"?`},
		{`{"contents":{"boxes":"box"}}`, fields, `contents: "box" is none of mask, boxes and keypoints`},
		{`{"transforms":{"images":[` + flip + `],"mask":[` + flip + `]},"contents":{"boxes":"independent"}}`, fields, ""},
		{`{"contents":{"boxs":"independent"}}`, fields, `independent: there is no field "boxs"; did you mean "boxes"?`},
		{`{"transforms":{"":[` + flip + `]}}`, arrays[:1], ""},
		{`{"transforms":{"a":[` + flip + `],"b":[` + flip + `]}}`, arrays[:2], ""},
		{`{"transforms":{"":[` + flip + `]}}`, arrays[:2], "no field has images; name the field that they are for: {\"field\": ...}; these can be images: a, b"},
		{`{"transforms":{"both":[` + flip + `]}}`, arrays[2:3], `may be (H, W, C) or (C, H, W); say contents={"both": "hwc"}, or chw`},
		{`{"transforms":{"both":[` + flip + `]},"contents":{"both":"chw"}}`, arrays[2:3], ""},
		{`{"transforms":{"gray":[` + flip + `]}}`, arrays[3:4], ""},
		{`{"transforms":{"":[` + flip + `]},"contents":{"gray":"chw"}}`, arrays[3:4], ""},
		{`{"transforms":{"":[` + flip + `]}}`, arrays[3:4], "no field has images; name the field that they are for"},
		{`{"transforms":{"flat":[` + flip + `]}}`, arrays[4:], `field "flat": RandomHorizontalFlip is for images: files, or uint8 of shape`},
		{`{"transforms":{"a":[{"op":"Cast","dtype":"float32"}]}}`, arrays[:1], ""},
	} {
		var o Options
		require.NoError(t, json.Unmarshal([]byte(c.options), &o))
		_, err := o.made(c.fields, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s:\n%v\nwant %s", c.options, err, c.want)
		}
	}
}
