package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// opener makes a mirror of the dataset under a key of a bucket. It exists during Open only.
type opener struct{ cache *cache }

// plan says how a dataset becomes a mirror. prepare makes the files, lays out the grid, and returns
// the dataset with all of its fields.
type plan struct {
	folder  string // name of the mirror's folder in the cache
	file    string // file in that folder that is opened; empty means the folder itself
	prepare func(ctx context.Context) (*store.Dataset, error)
}

// path returns the path of the dataset to open, in the mirror's folder dir.
func (p *plan) path(dir string) string { return filepath.Join(dir, p.file) }

// maxManifest limits the memory that a hostile manifest can take. Package store has the same limit.
const maxManifest = 1 << 30

// plan finds out what kind of dataset is under a key. Requests that may be needed are sent at the same time, as each
// answer takes a round trip.
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
	later := objects.Prefetch(layout.GenerationName(2)) // most datasets have no second generation
	defer func() { _ = later() }()
	defer cancel()
	var other *others
	if err := objects.Prefetch(layout.ManifestName)(); generation == "" && errors.Is(err, fs.ErrNotExist) {
		array := objects.Prefetch(layout.ZarrManifest)
		defer func() { _ = array() }()
		other = op.lookForOthers(reading, key)
		defer other.all.Wait()
		defer cancel()
	}
	folder := store.Folder{FS: objects, Name: op.cache.client.Name(key)}
	op.cache.folder = store.Folder{FS: op.cache.client.Folder(op.cache.fetches.ctx, key), Name: folder.Name}
	m, data, err := folder.Find(generation)
	if err != nil && generation != "" {
		err = layout.WithMark(err, ErrGeneration)
	}
	switch {
	case other != nil && errors.Is(err, fs.ErrNotExist):
		err = remote.NewError("read", op.cache.client.Name(path.Join(key, layout.ManifestName)), remote.ErrNotFound, nil)
		return other.plan(err)
	case err != nil:
		return nil, err
	case m.Metadata == nil:
		p := &plan{folder: folderName("flat", op.cache.client.Bucket().String(), key, string(data))}
		p.prepare = func(_ context.Context) (*store.Dataset, error) { return op.prepareFlat(key, m, data) }
		return p, nil
	}
	return op.planZarr(key, m, data), nil
}

// others are the answers for a key without a manifest. All requests are sent at the same time, together with the
// request for Zarr's manifest: the key may be a folder of raw samples, whose reader waits for the result.
type others struct {
	all     sync.WaitGroup
	foreign [3]error // answers for the files of Zarr that penstock did not write
	hdf5    *plan
	err     error // error of hdf5
}

// lookForOthers asks, while the manifest is on its way, whether the key is something else: Zarr of another program, or
// an HDF5 file. If the requests were sent one after the other, each would cost a round trip before an HDF5 file is
// opened or an error returned.
func (op *opener) lookForOthers(ctx context.Context, key string) *others {
	o := new(others)
	for i, name := range []string{layout.ZarrNode, ".zgroup", ".zarray"} {
		o.all.Go(func() { _, o.foreign[i] = op.cache.client.Stat(ctx, path.Join(key, name)) })
	}
	if slices.Contains(rawFiles, strings.ToLower(path.Ext(key))) {
		o.err = remote.ErrNotFound
		return o
	}
	o.all.Go(func() { o.hdf5, o.err = op.planHDF5(ctx, key) })
	return o
}

// rawFiles are the extensions of files that are not HDF5. A file with another extension is searched for HDF5's
// signature, which may be far from the beginning, so that a large file takes ten round trips.
var rawFiles = []string{".tar", ".tgz", ".gz", ".zst", ".bz2", ".xz", ".zip", ".parquet", ".arrow", ".feather", ".csv",
	".tsv", ".jsonl", ".ndjson", ".json", ".tfrecord", ".mds", ".npy", ".npz"}

// plan returns the plan for the dataset that was found; if nothing was found, it returns the error absent.
func (o *others) plan(absent error) (*plan, error) {
	o.all.Wait()
	switch {
	case o.err == nil || !errors.Is(o.err, remote.ErrNotFound):
		return o.hdf5, o.err
	case slices.Contains(o.foreign[:], nil):
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
// holes. The manifest comes last, so that a skeleton without a manifest is not finished. If a
// skeleton exists already, its files are compared with the expected files.
func (op *opener) skeleton(whole *store.Dataset, m *store.Manifest, data []byte) error {
	if got, err := op.cache.files.readAll(layout.ManifestName, int64(len(data))+1); err == nil && bytes.Equal(got, data) {
		if _, err := store.OpenFlat(op.cache.files.dir); err == nil {
			return nil
		}
		op.cache.index.state.clear() // another program has changed the files, so no block counts as present
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
	if err := private.Replace(op.cache.files.root, layout.ManifestName, 0o600, data); err != nil {
		return fmt.Errorf("the mirror: %w", err)
	}
	return nil
}
