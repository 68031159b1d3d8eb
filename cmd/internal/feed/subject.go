package feed

import (
	"context"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// subject is what is served: one on disk, or the mirror of one in a bucket.
type subject interface {
	loader.Source
	Schema() store.Schema
	Guard(f func() error) error
	Close() error
}

// open opens a dataset by its path or its URL.
func open(ctx context.Context, cache *datasetarg.Cache, path string, o Options) (subject, error) {
	if remote.IsURL(path) {
		ds, err := cache.Open(ctx, path, o.Fields, o.Split)
		if err != nil {
			return nil, err
		}
		return ds, nil
	}
	ds, err := mmapds.Open(path, mmapds.WithFields(o.Fields...), mmapds.WithSplit(o.Split))
	if err != nil {
		return nil, err
	}
	return ds, nil
}
