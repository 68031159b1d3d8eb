package rawcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/store"
)

// FindIntact is Find, except that it removes a corrupt dataset, with a warning, so that the dataset
// is built again. If the dataset is in use or pinned, it stays, and FindIntact returns an error.
func FindIntact(ctx context.Context, dir string, src *raw.Source, warn func(text string)) (*Entry, error) {
	e, err := Find(ctx, dir, src)
	if err != nil || !e.Ready {
		return e, err
	}
	found := corruption(e)
	if found == nil {
		return e, nil
	}
	removed, err := e.evict()
	if err != nil || !removed {
		return nil, errors.Join(fmt.Errorf("the cached dataset is corrupt, and in use or pinned: %w; remove it: %s",
			found, shell.Penstock("cache", "remove", e.Name, "--cache-dir", filepath.Dir(filepath.Dir(e.Path)))), err)
	}
	warn(fmt.Sprintf("the cached dataset %s was corrupt, and is made again: %v", e.Name, found))
	return Find(ctx, dir, src)
}

// corruption returns why the dataset cannot be opened, if its files are damaged or missing. Other
// errors, such as a lack of descriptors or of permission, return nil: removing the dataset would
// not help.
func corruption(e *Entry) error {
	info, err := os.Stat(e.Path)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder: %w", e.Path, store.ErrCorrupt)
	}
	generation := max(1, e.generation)
	ds, err := mmapds.Open(e.Path, mmapds.WithGeneration(generation))
	if err == nil {
		err = ds.Close()
	}
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
