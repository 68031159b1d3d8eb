package loader_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

const imageBytes = 3 * 224 * 224

// openImages opens a mapped dataset of 256 MiB of images.
func openImages(b *testing.B) *mmapds.Dataset {
	m := newMemorySource((256<<20)/imageBytes, imageBytes)
	m.specs[0].Shape = tensor.Shape{3, 224, 224}
	ds, err := mmapds.Open(writeDataset(b, m))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := ds.Close(); err != nil {
			b.Error(err)
		}
	})
	return ds
}

// rate returns the bytes per second that f handles, a buffer of the ring at a time.
func rate(bytes int, f func(dst []byte)) float64 {
	ring := make([]byte, 4*bytes)
	clear(ring)
	n, began := 0, time.Now()
	for ; n < 16 || time.Since(began) < 200*time.Millisecond; n++ {
		f(ring[n%4*bytes : (n%4+1)*bytes])
	}
	return float64(n*bytes) / time.Since(began).Seconds()
}

// BenchmarkGather is a shuffled gather of images that are in memory. "of-memcpy" is its speed
// in units of what one core copies, measured in the same run.
func BenchmarkGather(b *testing.B) {
	ds := openImages(b)
	all, err := ds.Slice("x", 0, ds.Len())
	if err != nil {
		b.Fatal(err)
	}
	src := all.Bytes()
	for _, workers := range []int{loader.Synchronous, 1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			at := 0
			memcpy := rate(64*imageBytes, func(dst []byte) {
				copy(dst, src[at:])
				at = (at + len(dst)) % (len(src) - len(dst))
			})
			benchmarkEpoch(b, ds, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Workers: workers}, false)
			b.ReportMetric(64*imageBytes*float64(b.N)/b.Elapsed().Seconds()/memcpy, "of-memcpy")
		})
	}
}

// BenchmarkNormalize is a shuffled gather of images that become mirrored, normalized float32.
// "x-write" is its time in units of that of writing as many bytes once, measured in the same
// run.
func BenchmarkNormalize(b *testing.B) {
	ds := openImages(b)
	tf := normalized(b)
	for _, workers := range []int{loader.Synchronous, 1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			write := rate(64*imageBytes*4, func(dst []byte) { clear(dst) })
			benchmarkEpoch(b, ds, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Workers: workers, Transforms: tf}, false)
			b.ReportMetric(b.Elapsed().Seconds()*write/(64*imageBytes*4*float64(b.N)), "x-write")
		})
	}
}

// BenchmarkOneCore does a batch and what it is compared with in turns, so that a busy machine
// slows both alike: a gather with a copy of as many bytes ("of-memcpy"), and one with
// normalization with a clearing of as many as it writes ("x-write").
func BenchmarkOneCore(b *testing.B) {
	ds := openImages(b)
	all, err := ds.Slice("x", 0, ds.Len())
	if err != nil {
		b.Fatal(err)
	}
	for _, norm := range []bool{false, true} {
		b.Run(fmt.Sprintf("normalize=%v", norm), func(b *testing.B) {
			size, o := 64*imageBytes, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, DropLast: true, Workers: loader.Synchronous}
			if norm {
				size, o.Transforms = 4*size, normalized(b)
			}
			ld, err := loader.New(ds, o)
			if err != nil {
				b.Fatal(err)
			}
			defer ld.Close()
			f, err := ld.BatchFiller()
			if err != nil {
				b.Fatal(err)
			}
			benchmarkInTurns(b, f, ld.Batches(0), all.Bytes(), size, norm)
		})
	}
}

func benchmarkInTurns(b *testing.B, f *loader.BatchFiller, steps int, src []byte, size int, norm bool) {
	ring, labels := make([]byte, 8*size), make([]byte, 64*8)
	var batches, reference time.Duration
	at := 0
	for i := 0; b.Loop(); i++ {
		x, y := ring[i%4*size:][:size], ring[(4+i%4)*size:][:size]
		began := time.Now()
		if _, err := f.Fill(b.Context(), i/steps, i%steps, x, labels); err != nil {
			b.Fatal(err)
		}
		filled := time.Now()
		if norm {
			clear(y)
		} else {
			copy(y, src[at:])
			at = (at + 7*size) % (len(src) - size)
		}
		if i >= 8 { // the pages of the ring are allocated
			batches += filled.Sub(began)
			reference += time.Since(filled)
		}
	}
	if norm {
		b.ReportMetric(batches.Seconds()/reference.Seconds(), "x-write")
	} else {
		b.ReportMetric(reference.Seconds()/batches.Seconds(), "of-memcpy")
	}
}

// normalized is mirroring and normalizing to float32.
func normalized(b *testing.B) map[string]loader.Transform {
	p, err := transforms.Compose(transforms.RandomHorizontalFlip{}, transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}})
	if err != nil {
		b.Fatal(err)
	}
	return map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}}
}

// BenchmarkNormalizeSmall is BenchmarkNormalize for records of 784 bytes.
func BenchmarkNormalizeSmall(b *testing.B) {
	m := newMemorySource(100_000, 784)
	m.specs[0].Shape = tensor.Shape{1, 28, 28}
	ds, err := mmapds.Open(writeDataset(b, m))
	if err != nil {
		b.Fatal(err)
	}
	defer ds.Close()
	p, err := transforms.Compose(transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.13}, Std: []float64{.31}})
	if err != nil {
		b.Fatal(err)
	}
	tf := map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}}
	benchmarkEpoch(b, ds, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Transforms: tf}, false)
}

// BenchmarkOrders measures the cost of each position of an order.
func BenchmarkOrders(b *testing.B) {
	const n = 1_000_000
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i%10 + 1)
	}
	weighted, err := sampler.NewWeighted(weights, 0)
	if err != nil {
		b.Fatal(err)
	}
	half := newMemorySource(n/2, 0)
	both, err := combine.NewConcat(half, half)
	if err != nil {
		b.Fatal(err)
	}
	mix, err := sampler.NewMix(both.Sizes(), sampler.MixOptions{Schedule: []sampler.MixWeights{{Weights: []float64{1, 3}}}, Batch: 256})
	if err != nil {
		b.Fatal(err)
	}
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
		if err != nil {
			b.Fatal(err)
		}
		for range ld.Epoch(b.Context(), 0) {
			break
		}
		ld.Close()
	}
}

// BenchmarkState is a snapshot in a training step.
func BenchmarkState(b *testing.B) {
	ld := open(b, newMemorySource(100, 4), loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}})
	next, stop := pull(ld)
	defer stop()
	next(b)
	b.ReportAllocs()
	for b.Loop() {
		sink += byte(ld.State().Step)
	}
}
