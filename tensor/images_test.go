package tensor_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/penstock/penstock/tensor"
)

// Gray pixels get an axis of one channel, with a name if axes have names; other pixels keep their shape.
func TestAsPixels(t *testing.T) {
	gray := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: []int{28, 20}, Dims: []string{"time", "y", "x"}}
	for layout, want := range map[string][2]string{tensor.HWC: {"(28, 20, 1)", "[time y x ]"}, tensor.CHW: {"(1, 28, 20)", "[time  y x]"}} {
		got := gray.AsPixels(layout)
		if is := [2]string{fmt.Sprint(got.Shape), fmt.Sprint(got.Dims)}; is != want || got.Layout != layout || len(gray.Shape) != 2 {
			t.Errorf("%s: %v, want %v", layout, is, want)
		}
	}
	if got := (tensor.Spec{DType: tensor.Uint8, Shape: []int{3, 8, 9}}).AsPixels(tensor.CHW); len(got.Shape) != 3 {
		t.Errorf("shape %v", got.Shape)
	}
}

// FuzzCutImage takes records apart: what AppendImage makes of the parts is the record.
func FuzzCutImage(f *testing.F) {
	f.Add([]byte{})
	f.Add(tensor.AppendImage(tensor.AppendImage(nil, []byte("one")), nil))
	f.Add([]byte{3, 0, 0, 0, 1})
	f.Add([]byte{255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, record []byte) {
		var again []byte
		files := 0
		for rest := record; len(rest) > 0; files++ {
			file, more, err := tensor.CutImage(rest)
			if err != nil {
				if _, counted := tensor.CountImages(record); counted == nil {
					t.Error("CountImages has no error")
				}
				return
			}
			again, rest = tensor.AppendImage(again, file), more
		}
		if n, err := tensor.CountImages(record); n != files || err != nil || !bytes.Equal(again, record) {
			t.Errorf("%d files, %v, of %d; %q of %q", n, err, files, again, record)
		}
	})
}
