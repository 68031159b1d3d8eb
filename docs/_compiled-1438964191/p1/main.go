// Block gpu.md:66.
package main

import (
	"context"
	"fmt"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/cuda"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/transforms"
)

func step(...any) {}

func main() { _ = run(context.Background()) }

func run(ctx context.Context) error {
	dev, err := cuda.Open(0) // errors.Is(err, cuda.ErrNoCUDA): range over the Loader itself
	if err != nil {
		return err
	}
	defer dev.Close()
	ds, err := mmapds.Open("ds")
	if err != nil {
		return err
	}
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}, Allocator: dev.Allocator()})
	if err != nil {
		return err
	}
	defer ld.Close()
	pf, err := cuda.New(ld, cuda.Options{
		Devices:   []*cuda.Device{dev},
		Fields:    []string{"images", "labels"},
		Normalize: map[string]cuda.Normalize{"images": {Layout: transforms.CHW, Mean: []float64{0.5}, Std: []float64{0.25}}},
	})
	if err != nil {
		return err
	}
	defer pf.Close()
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer dev.FreeStream(stream)
	for b, err := range pf.Epoch(ctx, 0) {
		if err != nil {
			return err
		}
		if err := b.Wait(stream); err != nil { // the stream waits for the copy, the host does not
			return err
		}
		fmt.Println(b.Field("images").Ptr)     // on the device: queue work on stream
		if err := b.Done(stream); err != nil { // the memory is filled again after that work
			return err
		}
	}

	return nil
}
