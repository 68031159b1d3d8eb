package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// opener makes a mirror of what lies under a key of a bucket.
type opener struct{ cache *cache }

// plan is how a dataset becomes a mirror.
type plan struct {
	folder  string // of the mirror, in the cache
	file    string // in that, which is opened; empty is the folder itself
	prepare func(ctx context.Context) (*store.Dataset, error)
}

func (p *plan) path(dir string) string { return filepath.Join(dir, p.file) }

// maxManifest is the limit of package store.
const maxManifest = 1 << 30

// plan finds out what lies under a key.
func (op *opener) plan(ctx context.Context, key string) (*plan, error) {
	if strings.HasSuffix(key, ".h5") || strings.HasSuffix(key, ".hdf5") {
		return op.planHDF5(ctx, key)
	}
	key, generation, err := splitGeneration(ctx, op.cache.client, key)
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithCancel(ctx)
	objects := op.cache.client.Folder(reading, key)
	wait := objects.Prefetch(layout.GenerationName(2)) // of most datasets there is none
	defer wait()
	defer cancel()
	folder := store.Folder{FS: objects, Name: op.cache.client.Name(key)}
	op.cache.folder = store.Folder{FS: op.cache.client.Folder(op.cache.fetches.ctx, key), Name: folder.Name}
	m, data, err := folder.Find(generation)
	if err != nil && generation != "" {
		err = layout.WithMark(err, ErrGeneration)
	}
	switch {
	case generation == "" && errors.Is(err, fs.ErrNotExist):
		err = remote.NewError("read", op.cache.client.Name(path.Join(key, layout.ManifestName)), remote.ErrNotFound, nil)
		return op.planOther(ctx, key, err)
	case err != nil:
		return nil, err
	case m.Metadata == nil:
		p := &plan{folder: folderName("flat", op.cache.client.Bucket().String(), key, string(data))}
		p.prepare = func(_ context.Context) (*store.Dataset, error) { return op.prepareFlat(key, m, data) }
		return p, nil
	case generation == "":
		return op.planZarr(key, m, data), nil
	}
	newest, err := folder.Manifest("")
	if err == nil && newest.Generation != m.Generation {
		err = fmt.Errorf("it is Zarr, whose earlier generations are read from folders only; generation %d is the newest: %w",
			newest.Generation, store.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	return op.planZarr(key, m, data), nil
}

// planOther finds out what lies under a key that has no manifest. All that remains is asked for at a time, as it may be
// a folder of raw samples, whose reader waits for this.
func (op *opener) planOther(ctx context.Context, key string, absent error) (*plan, error) {
	foreign := []string{layout.ZarrNode, ".zgroup", ".zarray"}
	errs := make([]error, len(foreign))
	var all sync.WaitGroup
	for i, name := range foreign {
		all.Go(func() { _, errs[i] = op.cache.client.Stat(ctx, path.Join(key, name)) })
	}
	p, err := op.planHDF5(ctx, key)
	all.Wait()
	switch {
	case err == nil || !errors.Is(err, remote.ErrNotFound):
		return p, err
	case slices.Contains(errs, nil):
		return nil, fmt.Errorf("it is Zarr that penstock did not write, which is read from files only; make a dataset of "+
			"it with preprocess: %w", store.ErrUnsupported)
	}
	return nil, fmt.Errorf("it is not a penstock dataset: %w", absent)
}

// prepareFlat makes the files of the mirror, without content.
func (op *opener) prepareFlat(key string, m *store.Manifest, data []byte) (*store.Dataset, error) {
	whole := &store.Dataset{
		Path: op.cache.files.dir, Format: "flat", Schema: m.Schema(), Records: m.Records, Manifest: m,
	}
	layout.Of(whole).Columns = layout.ColumnsOf(m.Schema().Specs(), m.Shards, op.cache.files.dir)
	op.cache.fetcher.version.seal = newSeal(key, layout.ManifestName, m, data)
	var err error
	op.cache.index.grid, err = newGrid(whole, func(file string) (name, object string) {
		name = op.cache.files.name(file)
		return name, path.Join(key, name)
	})
	if err == nil {
		err = op.cache.index.open()
	}
	if err != nil {
		return nil, err
	}
	return whole, op.cache.index.state.lock.setup(op.cache.files.dir, func() error { return op.skeleton(whole, m, data) })
}

// skeleton makes all files of a flat dataset: headers follow from the manifest, payloads are
// holes. The manifest comes last, so that a skeleton without one is not finished. If one exists
// already, its files are compared with the expected ones.
func (op *opener) skeleton(whole *store.Dataset, m *store.Manifest, data []byte) error {
	if got, err := op.cache.files.readAll(layout.ManifestName, int64(len(data))+1); err == nil && bytes.Equal(got, data) {
		if _, err := store.OpenFlat(op.cache.files.dir); err == nil {
			return nil
		}
		op.cache.index.state.clear() // somebody has been here
	}
	for k := range layout.Of(whole).Columns {
		c := &layout.Of(whole).Columns[k]
		for i, e := range c.Extents {
			payload, sums := m.Shards[i].Files[2*k], m.Shards[i].Files[2*k+1]
			err := sparse(op.cache.files.root, payload.Name, payload.Bytes, layout.Header(c.Spec, e.Count))
			if err == nil {
				err = sparse(op.cache.files.root, sums.Name, sums.Bytes,
					layout.SumsHeader(layout.Blocks(e.Count, c.Spec.RecordBytes())))
			}
			if err != nil {
				return fmt.Errorf("the mirror: %w", err)
			}
		}
	}
	const temporary = "manifest.new"
	if err := op.cache.files.root.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("the mirror: %w", err)
	}
	return os.Rename(filepath.Join(op.cache.files.dir, temporary), filepath.Join(op.cache.files.dir, layout.ManifestName))
}
