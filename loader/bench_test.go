package loader_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// BenchmarkEpoch is the loader over a Source in memory, and over a mapped dataset whose
// pages are in memory: "touch" reads a byte of every cache line of the batch, as training
// would.
func BenchmarkEpoch(b *testing.B) {
	for _, size := range []int{784, 150_528} {
		m := newMemorySource((256<<20)/size, size)
		ds, err := mmapds.Open(writeDataset(b, m))
		if err != nil {
			b.Fatal(err)
		}
		for _, order := range []sampler.Sampler{sampler.Sequential{}, sampler.Shuffle{}} {
			for _, touch := range []bool{false, true} {
				name := fmt.Sprintf("order=%T/record=%d/touch=%v", order, size, touch)
				o := loader.Options{BatchSize: 64, Sampler: order}
				b.Run("source=memory/"+name, func(b *testing.B) { benchmarkEpoch(b, m, o, touch) })
				b.Run("source=mapped/"+name, func(b *testing.B) { benchmarkEpoch(b, ds, o, touch) })
			}
		}
		if err := ds.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkEpoch takes b.N batches, over as many epochs as that needs.
func benchmarkEpoch(b *testing.B, src loader.Source, o loader.Options, touch bool) {
	ld, err := loader.New(src, o)
	if err != nil {
		b.Fatal(err)
	}
	defer ld.Close()
	visitOne(b, ld)
	left, epoch := b.N, 0
	var sum byte
	records := 0
	b.ReportAllocs()
	b.ResetTimer()
	for ; left > 0; epoch++ {
		for batch, err := range ld.Epoch(context.Background(), epoch) {
			if err != nil {
				b.Fatal(err)
			}
			x := batch.Field("x")
			if touch {
				sum += touchLines(x)
			}
			records += x.Len()
			if left--; left == 0 {
				break
			}
		}
	}
	b.StopTimer()
	b.SetBytes(int64(records) * int64(src.Specs()[0].RecordBytes()) / int64(b.N))
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	sink = sum
}

var sink byte

func touchLines(v tensor.View) (sum byte) {
	bytes := v.Bytes()
	for i := 0; i < len(bytes); i += 64 {
		sum += bytes[i]
	}
	return sum
}

// visitOne has the ring allocated and the pages of the Source mapped.
func visitOne(b *testing.B, ld *loader.Loader) {
	for batch, err := range ld.Epoch(context.Background(), -1) {
		if err != nil {
			b.Fatal(err)
		}
		sink += touchLines(batch.Field("x"))
	}
}

// BenchmarkCopy is the ceiling of a gather: one core copies 64 MiB back and forth.
func BenchmarkCopy(b *testing.B) {
	src, dst := make([]byte, 64<<20), make([]byte, 64<<20)
	b.SetBytes(64 << 20)
	for b.Loop() {
		copy(dst, src)
	}
}

func BenchmarkField(b *testing.B) {
	ld := open(b, newMemorySource(100, 4), loader.Options{BatchSize: 10})
	next, stop := pull(ld)
	defer stop()
	batch := next(b)
	for b.Loop() {
		sink += byte(batch.Field("y").Len())
	}
}
