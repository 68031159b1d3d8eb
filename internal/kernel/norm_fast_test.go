//go:build (amd64 || arm64) && !purego

package kernel

import (
	"testing"

	"github.com/penstock/penstock/tensor"
)

// TestUsualNormsAreFast holds that the statistics that people use do not fall back to the
// loop, that those that must, do, and that the tests of norms meet every kind of kernel.
func TestUsualNormsAreFast(t *testing.T) {
	if !useKernels {
		t.Skip("this CPU lacks instructions of the kernels")
	}
	for _, k := range norms {
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			var n Norm
			n.Init(dt, k.scaled, k.mean, k.std)
			want := normAffine
			switch {
			case k.name == "huge" && dt == tensor.Float32:
				want = normLoop
			case k.name == "twice rounded" || dt == tensor.Float32:
				want = normExact
			}
			if n.fast.mode != want {
				t.Errorf("%s, %v: mode %d, want %d", k.name, dt, n.fast.mode, want)
			}
		}
	}
}
