package mirror

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// seal tells a manifest from another one under its key.
type seal struct {
	key string // empty of an HDF5 file, of which each request names the version
	crc uint32
}

// ifReplaced says of blocks that are wrong or not there that the dataset was replaced since it was
// opened, if it was: its manifest is another one by now, or none while a new dataset is sent.
func (d *cache) ifReplaced(ctx context.Context, err error) error {
	if d.version.seal.key == "" || !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, remote.ErrNotFound) {
		return err
	}
	data, _, readErr := d.client.ReadAll(ctx, d.version.seal.key, maxManifest)
	if errors.Is(readErr, remote.ErrNotFound) || readErr == nil && store.CRC32C(data) != d.version.seal.crc {
		return fmt.Errorf("mirror: %s: %w: its %s is another one than when it was opened; open it again", d.name, remote.ErrChanged, store.ManifestName)
	}
	return err
}
