package transforms

import (
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// BenchmarkArray casts and standardises a record of features.
func BenchmarkArray(b *testing.B) {
	in := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{64, 1024}}
	r, err := arrayPipeline(b, Cast{tensor.Float32}, Standardize{Mean: []float64{100}, Std: []float64{50}},
		Clip{Max: p64(1)}).Runner(in)
	require.NoError(b, err)
	src, dst := make([]byte, 65536), make([]byte, 4*65536)
	b.SetBytes(4 * 65536)
	for b.Loop() {
		require.NoError(b, r.Do(dst, src))
	}
}
