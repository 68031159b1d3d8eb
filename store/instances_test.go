package store_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func on(f store.Field, content, image, instances string) store.Field {
	f.Content, f.Image, f.Instances = content, image, instances
	return f
}

// A schema says what masks, boxes and keypoints lie on, and refuses types that they cannot have.
func TestSchemaOfLabels(t *testing.T) {
	image := func(name string) store.Field { return on(store.NewRagged(name, tensor.Uint8), tensor.Image, "", "") }
	boxes := store.NewRagged("boxes", tensor.Float32, 4)
	for _, test := range []struct {
		fields []store.Field
		want   string // part of the error; empty for none
	}{
		{fields: []store.Field{image("a"), on(boxes, tensor.Boxes, "a", "objects"), on(store.NewRagged("labels", tensor.Int64), "", "", "objects")}},
		{fields: []store.Field{image("a"), on(boxes, tensor.Boxes, "", "")}},
		{fields: []store.Field{on(boxes, tensor.Boxes, "", "")}},
		{fields: []store.Field{image("a"), on(store.NewRagged("p", tensor.Float32, 17, 3), tensor.Keypoints, "", "")}},
		{fields: []store.Field{image("a"), on(store.NewField("p", tensor.Float32, 5, 2), tensor.Keypoints, "", "")}},
		{fields: []store.Field{image("a"), on(store.NewField("m", tensor.Uint16, 5, 7), tensor.Mask, "", "")}},
		{fields: []store.Field{image("a"), on(store.NewRagged("m", tensor.Bool, 5, 7), tensor.Mask, "a", "objects")}},
		{fields: []store.Field{image("a"), on(store.NewRagged("m", tensor.Uint8), tensor.Mask, "a", "")}},
		{fields: []store.Field{image("a"), image("b"), on(boxes, tensor.Boxes, "b", "")}},

		{fields: []store.Field{image("a"), image("b"), on(boxes, tensor.Boxes, "", "")}, want: `boxes on one of the images a, b; name it`},
		{fields: []store.Field{image("photo"), on(boxes, tensor.Boxes, "foto", "")}, want: `no field of images "foto" that its boxes could lie on; did you mean "photo"?`},
		{fields: []store.Field{image("a"), on(store.NewField("x", tensor.Int64), "", "a", "")}, want: "only masks, boxes and keypoints lie on an image"},
		{fields: []store.Field{image("a"), on(store.NewRagged("b", tensor.Float64, 4), tensor.Boxes, "", "")}, want: "needs float32 with a last axis of 4, such as float32[*,4], not float64[*,4]"},
		{fields: []store.Field{image("a"), on(store.NewRagged("b", tensor.Float32, 4), tensor.Keypoints, "", "")}, want: "content keypoints needs float32"},
		{fields: []store.Field{image("a"), on(store.NewField("m", tensor.Float32, 5, 7), tensor.Mask, "", "")}, want: "content mask needs integers"},
		{fields: []store.Field{image("a"), on(store.NewField("m", tensor.Uint8, 1, 5, 7), tensor.Mask, "", "")}, want: "content mask needs integers of shape (h, w)"},
		{fields: []store.Field{on(store.NewField("x", tensor.Int64), "", "", "objects")}, want: `instances "objects" need any number of rows, not int64`},
		{fields: []store.Field{on(store.NewRagged("x", tensor.Int64), "", "", "a b")}, want: `instances "a b" is not a name`},
		{fields: []store.Field{on(store.NewField("x", tensor.Int64), "box", "", "")}, want: `content "box" is none of utf-8, image, images, source-name, mask, boxes, keypoints`},
	} {
		err := store.Schema{Fields: test.fields}.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: %v, want %q", test.fields, err, test.want)
		}
	}
}

// Fields of the same instances have one number of rows in each record.
func TestCheckInstances(t *testing.T) {
	s := store.Schema{Fields: []store.Field{
		on(store.NewRagged("boxes", tensor.Float32, 4), tensor.Boxes, "", "objects"), store.NewRagged("tokens", tensor.Int64),
		on(store.NewRagged("labels", tensor.Int64), "", "", "objects"),
	}}
	rows := func(n ...int) func(int) int { return func(i int) int { return n[i] } }
	require.NoError(t, s.CheckInstances(rows(2, 5, 2)))
	if err := s.CheckInstances(rows(2, 5, 3)); err == nil || !strings.Contains(err.Error(), `boxes has 2 rows and labels has 3; fields of the instances "objects"`) {
		t.Error(err)
	}
}
