package cnn_test

import (
	"fmt"

	"github.com/penstock/penstock/examples/train/internal/cnn"
)

// A network learns to distinguish dark from bright.
func Example() {
	n := cnn.New(cnn.Config{Channels: 1, Height: 2, Width: 2, Classes: 2, Seed: 1})
	images := []float32{-1, -1, -1, -1, 1, 1, 1, 1}
	labels := []int64{0, 1}
	for range 50 {
		n.Train(images, labels, 0.01)
	}
	fmt.Println(n.Evaluate(images, labels).Accuracy())
	// Output: 1
}
