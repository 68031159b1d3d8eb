// Block raw.md:40.
package main

import (
	"context"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/transforms"
)

func step(...any) {}

func main() { _ = run(context.Background()) }

func run(ctx context.Context) error {
	whole, err := transforms.Compose(transforms.Resize{Size: []int{256, 256}}, transforms.RandomCrop{Size: []int{224}})
	if err != nil {
		return err
	}
	head, tail, err := whole.Split()
	if err != nil {
		return err
	}
	src, err := prepare.Open(ctx, "photos", prepare.OpenOptions{Head: head})
	if err != nil {
		return err
	}
	defer src.Close()
	ld, err := loader.New(src, loader.Options{BatchSize: 64, Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: tail}}})
	if err != nil {
		return err
	}
	defer ld.Close()

	return nil
}
