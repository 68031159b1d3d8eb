package loader_test

import (
	"context"
	"fmt"
	"log"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Any Source will do; training code opens one with mmapds.Open.
func Example() {
	ds := newMemorySource(10, 784) // ten records
	ld, err := loader.New(ds, loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Seed: 42})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for epoch := range 2 {
		for b, err := range ld.Epoch(context.Background(), epoch) {
			if err != nil {
				log.Fatal(err)
			}
			x, y := tensor.As[uint8](b.Field("x")), tensor.As[int64](b.Field("y"))
			fmt.Printf("epoch %d, batch %d: %d bytes, records %v, labels %v\n", epoch, b.Step(), len(x), b.Indices(), y)
		}
	}
	// Output:
	// epoch 0, batch 0: 3136 bytes, records [0 8 4 1], labels [0 24 12 3]
	// epoch 0, batch 1: 3136 bytes, records [6 7 2 9], labels [18 21 6 27]
	// epoch 0, batch 2: 1568 bytes, records [3 5], labels [9 15]
	// epoch 1, batch 0: 3136 bytes, records [4 9 5 7], labels [12 27 15 21]
	// epoch 1, batch 1: 3136 bytes, records [3 6 8 1], labels [9 18 24 3]
	// epoch 1, batch 2: 1568 bytes, records [0 2], labels [0 6]
}

// In the order of the dataset, batches are views of its memory.
func Example_sequential() {
	ds := newMemorySource(1000, 784)
	ld, err := loader.New(ds, loader.Options{BatchSize: 256, DropLast: true})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Field("x").Shape())
	}
	st := ld.Stats()
	fmt.Println(st.ViewBytes, "bytes viewed,", st.CopiedBytes, "copied")
	// Output:
	// (256, 784)
	// (256, 784)
	// (256, 784)
	// 608256 bytes viewed, 0 copied
}

// Keep holds a batch beyond its loop body, for example until a device has read it.
func ExampleBatch_Keep() {
	ds := newMemorySource(100, 784)
	ld, err := loader.New(ds, loader.Options{BatchSize: 10, Prefetch: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	var kept []loader.Batch
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if b.Step() < 2 {
			if err := b.Keep(); err != nil {
				log.Fatal(err)
			}
			kept = append(kept, b)
		}
	}
	for _, b := range kept {
		fmt.Println(b.Indices())
		b.Release()
	}
	// Output:
	// [0 1 2 3 4 5 6 7 8 9]
	// [10 11 12 13 14 15 16 17 18 19]
}

// reverse is a Sampler of one's own: the last record comes first.
type reverse struct{}

func (reverse) Epoch(n int, _ uint64, _ int) sampler.Sequence { return reversed(n) }

type reversed int

func (r reversed) Len() int { return int(r) }

func (r reversed) Fill(pos int, dst []int) {
	for i := range dst {
		dst[i] = int(r) - 1 - pos - i
	}
}

func Example_sampler() {
	ld, err := loader.New(newMemorySource(7, 1), loader.Options{BatchSize: 3, Sampler: reverse{}})
	if err != nil {
		log.Fatal(err)
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Indices())
	}
	// Output:
	// [6 5 4]
	// [3 2 1]
	// [0]
}
