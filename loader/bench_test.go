package loader_test

import (
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
)

// BenchmarkOrders measures the cost of each position of an order.
func BenchmarkOrders(b *testing.B) {
	const n = 1_000_000
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i%10 + 1)
	}
	weighted, err := sampler.NewWeighted(weights, 0)
	require.NoError(b, err)
	half := newMemorySource(n/2, 0)
	both, err := combine.NewConcat(half, half)
	require.NoError(b, err)
	mix, err := sampler.NewMix(both.Sizes(), sampler.MixOptions{Schedule: []sampler.MixWeights{{Weights: []float64{1, 3}}}, Batch: 256})
	require.NoError(b, err)
	for name, o := range map[string]sampler.Sampler{
		"run": sampler.Block{Size: 64}, "weighted": weighted, "mix": mix, "split": sampler.Split{To: 0.9, Inner: sampler.Shuffle{}},
	} {
		b.Run(name, func(b *testing.B) {
			seq := o.Epoch(n, 1, 1)
			dst := make([]int, 256)
			pos := 0
			b.ReportAllocs()
			for b.Loop() {
				seq.Fill(pos, dst)
				pos = (pos + len(dst)) % (seq.Len() - len(dst))
			}
			b.ReportMetric(float64(b.N*len(dst))/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkOpen is the way from a dataset of ten million records to its first shuffled
// batch.
func BenchmarkOpen(b *testing.B) {
	m := newMemorySource(10_000_000, 1)
	for b.Loop() {
		ld, err := loader.New(m, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}})
		require.NoError(b, err)
		for range ld.Epoch(b.Context(), 0) {
			break
		}
		ld.Close()
	}
}
