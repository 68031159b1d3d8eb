package gomlxds_test

import (
	"fmt"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/penstock/penstock/examples/gomlx/gomlxds"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

// A train.Loop ranges over a Dataset like this. State is kept with each checkpoint, and Resume
// makes a Dataset that continues there.
func Example() {
	backend, err := gobackend.New("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Finalize()
	src := newRows(10) // in a program: mmapds.Open("data/train")
	options := loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Seed: 1, DropLast: true}
	config := gomlxds.Config{Backend: backend, Inputs: []string{"x"}, Labels: []string{"y"}}

	ds, err := gomlxds.New(src, options, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ds.Close()
	for batch, err := range ds.Iter() {
		if err != nil {
			fmt.Println(err)
			return
		}
		labels, _ := tensors.CopyFlatData[int64](batch.Labels[0])
		fmt.Println(batch.Inputs[0].Shape(), labels)
		_ = batch.Finalize()
	}
	st := ds.State()
	fmt.Printf("next: epoch %d, step %d\n", st.Epoch, st.Step)
	// Output:
	// (Float32)[4, 2] [9 8 0 3]
	// (Float32)[4, 2] [6 1 5 4]
	// next: epoch 1, step 0
}
