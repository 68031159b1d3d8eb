// Block README.md:55.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

func main() {
	ds, err := mmapds.Open("ds")
	if err != nil {
		log.Fatal(err)
	}
	ld, err := loader.New(ds, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 42})
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(tensor.As[uint8](b.Field("images"))), tensor.As[int64](b.Field("labels")))
	}
}
