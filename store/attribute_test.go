package store

import (
	"reflect"
	"testing"

	"github.com/penstock/penstock/tensor"
)

func TestAttributes(t *testing.T) {
	f := NewField("images", tensor.BFloat16, 1, 2, 2)
	f.Layout = CHW
	f.Classes = []string{"a\xff", ""}
	f.Normalization = &Normalization{Applied: true, Scale: 2, Mean: []float64{1}, Std: []float64{-2}}
	want := []Attribute{
		{Name: "layout", Text: 4, Data: []byte("NCHW")},
		{Name: "dtype", Text: 8, Data: []byte("bfloat16")},
		{Name: "class_names", Text: 4, Count: 2, Data: []byte("a\ufffd\x00\x00\x00\x00")},
		{Name: "mean", DType: tensor.Float64, Count: 1, Data: []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{Name: "std", DType: tensor.Float64, Count: 1, Data: []byte{0, 0, 0, 0, 0, 0, 0, 0xc0}},
		{Name: "scale", DType: tensor.Float64, Data: []byte{0, 0, 0, 0, 0, 0, 0, 0x40}},
		{Name: "normalization_applied", DType: tensor.Bool, Data: []byte{1}},
	}
	if got := f.Attributes(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if a := TextAttribute("", ""); len(a.Data) != 1 || a.Text != 1 || a.Count != 0 {
		t.Errorf("an empty text is %+v", a)
	}
}

func TestAttributesThatFit(t *testing.T) {
	f := NewField("labels", tensor.Int64)
	for _, n := range []int{AttributeLimit, AttributeLimit + 1} {
		f.Classes = []string{string(make([]byte, n))}
		if a := f.Attributes()[0]; a.Fits() != (n == AttributeLimit) {
			t.Errorf("%d bytes: fits is %v", n, a.Fits())
		}
	}
}
