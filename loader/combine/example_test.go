package combine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Two slices, as images of 2 x 2 and their labels.
func ExampleNewArrays() {
	images := []float32{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}
	labels := []int64{7, 8, 9}
	src, err := combine.NewArrays(
		combine.Array{Name: "images", Values: tensor.From(images, 2, 2)},
		combine.Array{Name: "labels", Values: tensor.From(labels)},
	)
	if err != nil {
		log.Fatal(err)
	}
	ld, err := loader.New(src, loader.Options{BatchSize: 2, Sampler: sampler.Shuffle{}, Seed: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Field("images").Shape(), tensor.As[int64](b.Field("labels")))
	}
	// Output:
	// (2, 2, 2) [7 8]
	// (1, 2, 2) [9]
}

// A dataset that is computed: the squares of the record numbers.
func ExampleFunc() {
	square := func(_ context.Context, record int, _ string, dst tensor.View) error {
		tensor.As[int64](dst)[0] = int64(record * record)
		return nil
	}
	src := combine.Func{Records: 6, Fields: []tensor.Spec{{Name: "square", DType: tensor.Int64}}, Make: square}
	ld, err := loader.New(src, loader.Options{BatchSize: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tensor.As[int64](b.Field("square")))
	}
	// Output:
	// [0 1 4 9]
	// [16 25]
}

// The vegetation index of two channels.
func ExampleNewDerive() {
	src, err := combine.NewArrays(
		combine.Array{Name: "red", Values: tensor.From([]uint16{100, 300})},
		combine.Array{Name: "nir", Values: tensor.From([]uint16{300, 100})},
	)
	if err != nil {
		log.Fatal(err)
	}
	view, err := combine.NewDerive(src, combine.Derive{Name: "ndvi", Expression: "(nir - red) / (nir + red)"})
	if err != nil {
		log.Fatal(err)
	}
	ndvi, err := view.Slice("ndvi", 0, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ndvi.DType(), tensor.As[float32](ndvi))
	// Output: float32 [0.5 -0.5]
}
