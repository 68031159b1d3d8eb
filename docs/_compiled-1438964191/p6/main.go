// Block resume.md:37.
package main

import (
	"context"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
)

func step(...any) {}

func main() { _ = run(context.Background()) }

func run(ctx context.Context) error {
	ds, err := mmapds.Open("resumed")
	if err != nil {
		return err
	}
	defer ds.Close()
	opts := loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Seed: 1}
	ld, err := loader.New(ds, opts)
	if err != nil {
		return err
	}
	state := ld.State() // of the next batch; encode it as JSON next to the checkpoint
	if err := ld.Close(); err != nil {
		return err
	}
	ld, err = loader.Resume(ds, opts, state)
	if err != nil {
		return err
	}
	defer ld.Close()

	return nil
}
