package view

import (
	"reflect"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

func TestAttributes(t *testing.T) {
	f := store.NewField("images", tensor.BFloat16, 1, 2, 2)
	f.Layout = tensor.CHW
	f.Classes = []string{"a\xff", ""}
	f.Normalization = &store.Normalization{Applied: true, Scale: 2, Mean: []float64{1}, Std: []float64{-2}}
	float := encode.Element{DType: tensor.Float64}
	want := []encode.Attribute{
		{Name: "layout", Element: encode.Element{Text: 4}, Data: []byte("NCHW")},
		{Name: "dtype", Element: encode.Element{Text: 8}, Data: []byte("bfloat16")},
		{Name: "class_names", Element: encode.Element{Text: 4}, Count: 2, Data: []byte("a\ufffd\x00\x00\x00\x00")},
		{Name: "mean", Element: float, Count: 1, Data: []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{Name: "std", Element: float, Count: 1, Data: []byte{0, 0, 0, 0, 0, 0, 0, 0xc0}},
		{Name: "scale", Element: float, Data: []byte{0, 0, 0, 0, 0, 0, 0, 0x40}},
		{Name: "normalization_applied", Element: encode.Element{DType: tensor.Bool}, Data: []byte{1}},
	}
	if got := attributes(f); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if a := encode.Text("", ""); len(a.Data) != 1 || a.Element.Text != 1 || a.Count != 0 {
		t.Errorf("an empty text is %+v", a)
	}
}

func TestAttributesThatFit(t *testing.T) {
	for _, n := range []int{encode.AttributeLimit, encode.AttributeLimit + 1} {
		f := store.NewField("labels", tensor.Int64)
		f.Classes = []string{string(make([]byte, n))}
		objects, err := Describe([]encode.Object{{Path: "/labels"}}, store.Schema{Fields: []store.Field{f}})
		require.NoError(t, err)
		if fits := n == encode.AttributeLimit; fits != (len(objects) == 1) || fits != (len(objects[0].Attributes) == 1) {
			t.Errorf("%d bytes: %+v", n, objects)
		}
	}
}
