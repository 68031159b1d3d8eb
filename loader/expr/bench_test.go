package expr_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/tensor"
)

var benchRecords = flag.Int("filter-records", 10_000_000, "records of BenchmarkFind")

func BenchmarkFind(b *testing.B) {
	n := *benchRecords
	label, score, text := make([]int32, n), make([]float32, n), make([]byte, 8*n)
	offsets := make([]int64, n+1)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		label[i], score[i] = int32(r.IntN(100)), r.Float32()
		offsets[i+1] = offsets[i] + int64(r.IntN(9))
	}
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	src, err := combine.NewArrays(
		combine.Array{Name: "label", Values: tensor.From(label)}, combine.Array{Name: "score", Values: tensor.From(score)},
		combine.Array{Name: "text", Values: tensor.From(text[:offsets[n]]), Offsets: offsets, Content: tensor.Text},
	)
	require.NoError(b, err)
	for _, where := range []string{"label = 7", "label in (3, 7, 12) and score > 0.5", "score * 2 - 1 < label / 100", "contains(text, 'ab')", "sample(0.1)"} {
		b.Run(where, func(b *testing.B) {
			for b.Loop() {
				if _, err := expr.Find(b.Context(), src, where); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
