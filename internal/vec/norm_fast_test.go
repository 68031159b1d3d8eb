//go:build (amd64 || arm64) && !purego

package vec

import (
	"testing"

	"github.com/penstock/penstock/tensor"
)

// TestUsualNormsAreFast holds that the statistics that people use do not fall back to the
// loop, and that those that must, do.
func TestUsualNormsAreFast(t *testing.T) {
	if !useKernels {
		t.Skip("this CPU lacks instructions of the kernels")
	}
	for _, k := range norms {
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			var n Norm
			n.Init(dt, k.scaled, k.mean, k.std)
			if must := k.name == "huge" && dt == tensor.Float32; (n.fast.mode == normLoop) != must {
				t.Errorf("%s, %v: mode %d", k.name, dt, n.fast.mode)
			}
		}
	}
}
