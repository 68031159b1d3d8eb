// Block buckets.md:26.
package main

import (
	"context"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
)

func step(...any) {}

func main() { _ = run(context.Background()) }

func run(ctx context.Context) error {
	bucket, u, err := cloud.Open(ctx, "s3://lab/train?region=eu-west-1")
	if err != nil {
		return err
	}
	ds, err := mirror.Open(ctx, bucket, u.Key, mirror.Options{CacheDir: "/scratch/penstock", CacheBytes: 500 << 30})
	if err != nil {
		return err
	}
	defer ds.Close()
	ld, err := loader.New(ds, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}})
	if err != nil {
		return err
	}
	defer ld.Close()

	return nil
}
