// Block raw.md:20.
package main

import (
	"context"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/transforms"
)

func step(...any) {}

func main() { _ = run(context.Background()) }

func run(ctx context.Context) error {
	src, err := prepare.Open(ctx, "photos", prepare.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	p, err := transforms.Compose(transforms.RandomResizedCrop{Size: []int{224}}, transforms.RandomHorizontalFlip{})
	if err != nil {
		return err
	}
	ld, err := loader.New(src, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p}}})
	if err != nil {
		return err
	}
	defer ld.Close()

	return nil
}
