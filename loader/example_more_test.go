package loader_test

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"log"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// A snapshot in the loop is enough to go on at the next batch: here with two ranks in place
// of one.
func ExampleResume() {
	ds := newMemorySource(24, 784)
	opts := loader.Options{BatchSize: 8, Sampler: sampler.Shuffle{}, Seed: 42}
	ld, err := loader.New(ds, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	var snapshot []byte
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if b.Step() == 0 {
			snapshot, _ = json.Marshal(ld.State())
			continue
		}
		fmt.Println("batch", b.Step(), b.Indices())
	}
	fmt.Println(string(snapshot))

	var st loader.State
	if err := json.Unmarshal(snapshot, &st); err != nil {
		log.Fatal(err)
	}
	opts.BatchSize = 4
	for rank := range 2 {
		opts.World = loader.World{Rank: rank, Size: 2}
		ld, err := loader.Resume(ds, opts, st)
		if err != nil {
			log.Fatal(err)
		}
		defer ld.Close()
		for b, err := range ld.Epoch(context.Background(), st.Epoch) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("rank", rank, "batch", b.Step(), b.Indices())
		}
	}
	// Output:
	// batch 1 [10 5 3 7 2 6 22 1]
	// batch 2 [8 20 0 16 17 12 21 4]
	// {"v":1,"n":24,"sampler":"shuffle","seed":42,"batch":8,"epoch":0,"step":1}
	// rank 0 batch 1 [10 5 3 7]
	// rank 0 batch 2 [8 20 0 16]
	// rank 1 batch 1 [2 6 22 1]
	// rank 1 batch 2 [17 12 21 4]
}

// Stored bytes become normalized, randomly mirrored float32 in the pass that gathers them.
func ExampleImages() {
	ds := newMemorySource(100, 3*32*32)
	ds.specs[0].Shape = tensor.Shape{3, 32, 32}
	p, err := transforms.Compose(
		transforms.RandomHorizontalFlip{},
		transforms.ToLayout{Layout: transforms.CHW},
		transforms.ConvertDType{DType: tensor.Float32},
		transforms.Normalize{Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}},
	)
	if err != nil {
		log.Fatal(err)
	}
	ld, err := loader.New(ds, loader.Options{
		BatchSize: 64, Sampler: sampler.Shuffle{}, DropLast: true,
		Transforms: map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		x := tensor.As[float32](b.Field("x"))
		fmt.Println(b.Field("x").Shape(), len(x))
	}
	// Output:
	// (64, 3, 32, 32) 196608
}

// halve is a Transform of one's own: bytes become float32 of half their value.
type halve struct{}

// Output says what a record becomes.
func (halve) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.DType != tensor.Uint8 {
		return in, fmt.Errorf("halve: records are %v, not uint8", in.DType)
	}
	in.DType = tensor.Float32
	return in, nil
}

// Worker returns the function of one goroutine, which may have buffers of its own.
func (halve) Worker(in tensor.Spec, _ int) (loader.RecordFunc, error) {
	out := in
	out.DType = tensor.Float32
	return func(dst, src []byte, _ loader.Record) error {
		to := tensor.As[float32](tensor.Of(out, 1, dst))
		for i, b := range src {
			to[i] = float32(b) / 2
		}
		return nil
	}, nil
}

// ID says what the Transform does, so that Resume refuses another.
func (halve) ID() string { return "halve" }

func ExampleTransform() {
	ld, err := loader.New(newMemorySource(4, 3), loader.Options{BatchSize: 2, Transforms: map[string]loader.Transform{"x": halve{}}})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tensor.As[float32](b.Field("x")))
	}
	// Output:
	// [0 0.5 1 3.5 4 4.5]
	// [7 7.5 8 10.5 11 11.5]
}

// A Collate of one's own: the sum of each record's values as one more field.
func ExampleCollate_sum() {
	sum := func(d *loader.MutableBatch) error {
		x, sums := tensor.As[uint8](d.Field("x")), tensor.As[float32](d.Field("sum"))
		for i := range sums {
			sums[i] = 0
			for _, v := range x[i*3 : i*3+3] {
				sums[i] += float32(v)
			}
		}
		return nil
	}
	ld, err := loader.New(newMemorySource(4, 3), loader.Options{BatchSize: 4, Collate: loader.Collate{
		Adds:   []tensor.Spec{{Name: "sum", DType: tensor.Float32}},
		Worker: func(int) (loader.CollateFunc, error) { return sum, nil },
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tensor.As[float32](b.Field("sum")))
	}
	// Output: [3 24 45 66]
}

// MixUp blends records of a batch, and makes soft labels of hard ones.
func ExampleCollate() {
	ds := newMemorySource(8, 3*4*4)
	ds.specs[0].Shape = tensor.Shape{3, 4, 4}
	const classes = 32
	p, err := transforms.Compose(transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32})
	if err != nil {
		log.Fatal(err)
	}
	mixUp := func(int) (loader.CollateFunc, error) {
		mix := transforms.MixUp{Alpha: 0.2, Classes: classes}
		return func(d *loader.MutableBatch) error {
			rnd := d.Rand()
			return mix.Apply(&transforms.Batch{
				X: tensor.As[float32](d.Field("x")), Info: transforms.Info{W: 4, H: 4, C: 3, DType: tensor.Float32, Layout: transforms.CHW},
				Labels: tensor.As[int64](d.Field("y")), Y: tensor.As[float32](d.Field("soft")),
			}, &rnd)
		}, nil
	}
	ld, err := loader.New(ds, loader.Options{
		BatchSize:  4,
		Transforms: map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}},
		Collate: loader.Collate{
			Adds:   []tensor.Spec{{Name: "soft", DType: tensor.Float32, Shape: tensor.Shape{classes}}},
			Edits:  []string{"x"},
			Worker: mixUp,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		sum := float32(0)
		for _, y := range tensor.As[float32](b.Field("soft")) {
			sum += y
		}
		fmt.Printf("%v: labels add up to %.1f\n", b.Field("soft").Shape(), sum)
	}
	// Output:
	// (4, 32): labels add up to 4.0
	// (4, 32): labels add up to 4.0
}

// Two datasets, the second drawn from three times as often as the first.
func Example_mix() {
	both, err := combine.NewConcat(newMemorySource(1000, 4), newMemorySource(50, 4))
	if err != nil {
		log.Fatal(err)
	}
	mix, err := sampler.NewMix(both.Sizes(), sampler.MixOptions{
		Schedule: []sampler.MixWeights{{Weights: []float64{1, 3}}}, Batch: 256, Draws: 8192,
	})
	if err != nil {
		log.Fatal(err)
	}
	ld, err := loader.New(both, loader.Options{BatchSize: 256, Sampler: mix})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	var drawn [2]int
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range b.Indices() {
			source, _ := both.Locate(r)
			drawn[source]++
		}
	}
	fmt.Println(drawn)
	// Output: [2048 6144]
}

// The numbers of a Loader, published at /debug/vars.
func ExampleLoader_Stats() {
	ld, err := loader.New(newMemorySource(1000, 784), loader.Options{BatchSize: 100})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	expvar.Publish("training.loader", expvar.Func(func() any { return ld.Stats() }))
	for _, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
	}
	st := ld.Stats()
	fmt.Println(st.Batches, "batches,", st.CopiedBytes, "bytes copied")
	// Output: 10 batches, 0 bytes copied
}
