package transforms

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// torchvision's names make the records that ToLayout and ConvertDType make, and are written as
// those.
func TestTorchNames(t *testing.T) {
	src := testImage(7, 5, 3)
	f32, chw := ConvertDType{DType: tensor.Float32}, ToLayout{CHW}
	for _, tt := range []struct{ named, plain []Transform }{
		{[]Transform{PILToTensor{}}, []Transform{chw}},
		{[]Transform{ToImage{}, ToDtype{DType: tensor.Float32, Scale: true}, ImageNet}, []Transform{chw, f32, ImageNet}},
		{[]Transform{ToDtype{DType: tensor.Float16}}, []Transform{ConvertDType{DType: tensor.Float16, NoScale: true}}},
		{[]Transform{ConvertImageDtype{}}, []Transform{f32}},
	} {
		if !bytes.Equal(apply(t, src, tt.named...), apply(t, src, tt.plain...)) {
			t.Errorf("%v makes other records than %v", tt.named, tt.plain)
		}
		a, errA := json.Marshal(mustCompose(t, tt.named...))
		b, errB := json.Marshal(mustCompose(t, tt.plain...))
		if !bytes.Equal(a, b) || errA != nil || errB != nil {
			t.Errorf("%s, want %s", a, b)
		}
	}
	if !bytes.Equal(apply(t, src, ToTensor{}, ImageNet), apply(t, src, chw, f32, ImageNet)) {
		t.Error("ToTensor makes another record")
	}
	if _, err := Compose(ToDtype{DType: tensor.Int64}); err == nil {
		t.Error("int64 passes")
	}
	for _, op := range []Transform{ToImage{}, PILToTensor{}, ToDtype{DType: tensor.Float32},
		ConvertImageDtype{DType: tensor.Float32}} {
		p := new(Plan)
		require.NoError(t, p.reset(InfoOf(src), Rand{}))
		if err := op.Build(p); err != nil || p.Info() == InfoOf(src) {
			t.Errorf("%s on its own: %v, %v", opName(op), p.Info(), err)
		}
	}
}
