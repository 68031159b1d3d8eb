package mirror

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/remote"
)

// ErrGeneration is an error of [Open] for a key that names a generation which the dataset does not keep, or which
// cannot be read.
var ErrGeneration = errors.New("no such generation")

// SplitGeneration splits a key such as ds@3 or ds@baseline into dataset and generation, if the bucket has no object or
// dataset of the whole key and ds is a dataset. Otherwise folder is the whole key.
func SplitGeneration(ctx context.Context, b remote.Bucket, key string) (folder, generation string, err error) {
	return splitGeneration(ctx, requests.NewClient(b, remote.Policy{}), key)
}

// splitGeneration splits "KEY@GENERATION". A key may have an @ of its own, so the bucket is asked: if the whole key is
// a dataset, there is no generation. Only names that a generation or tag can have are asked for.
func splitGeneration(ctx context.Context, c *requests.Client, key string) (folder, generation string, err error) {
	i := strings.LastIndexByte(key, '@')
	if i <= 0 || !layout.IsName(key[i+1:]) {
		return key, "", nil
	}
	if there, err := has(ctx, c, key, layout.ManifestName, layout.ZarrManifest, ""); there || err != nil {
		return key, "", err
	}
	if there, err := has(ctx, c, key[:i], layout.ManifestName, layout.ZarrManifest); there || err != nil {
		return key[:i], key[i+1:], err
	}
	return key, "", nil
}

// has reports whether at least one of some objects exists under a key. A store may answer "permission denied" for a
// missing object, so that counts as missing.
func has(ctx context.Context, c *requests.Client, key string, names ...string) (bool, error) {
	for _, name := range names {
		_, err := c.Stat(ctx, path.Join(key, name))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, remote.ErrNotFound) && !errors.Is(err, remote.ErrPermission) {
			return false, err
		}
	}
	return false, nil
}
