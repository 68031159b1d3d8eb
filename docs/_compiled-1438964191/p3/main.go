// Block labels.md:108.
package main

import (
	"context"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/transforms"
)

func step(...any) {}

func main() { _ = run(context.Background()) }

func run(ctx context.Context) error {
	ds, err := mmapds.Open("out/photos")
	if err != nil {
		return err
	}
	train, err := transforms.Compose(
		transforms.RandomIoUCrop{}, transforms.Resize{Size: []int{320, 320}}, transforms.RandomHorizontalFlip{},
		transforms.SanitizeBoundingBoxes{}, transforms.ToTensor{},
	)
	if err != nil {
		return err
	}
	ld, err := loader.New(ds, loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{},
		Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: train}}})
	if err != nil {
		return err
	}
	for b, err := range ld.Epoch(ctx, 0) {
		if err != nil {
			return err
		}
		boxes, ends := b.Field("boxes"), b.Offsets("boxes") // the rows of all records, and where each record's begin
		step(b.Field("images"), boxes, ends)
	}

	return nil
}
