package mirror

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// Dataset is a dataset in a bucket: a Dataset of package mmapds whose records are fetched when they
// are needed, or earlier if a loader names them. Any goroutine may call its methods.
type Dataset struct {
	*mmapds.Dataset
	cache *cache
	done  atomic.Bool
}

// cache is the mirror of a dataset and everything that fetches into it. It implements the Pager of
// package mmapds. Each part has its own lock or none:
//
//	files     the files in the mirror's folder
//	index     which blocks are there, and which of them are known to be right
//	segments  which blocks must not be evicted, as somebody reads them
//	evictor   the limit of all mirrors together
//	engine    which blocks are fetched, and when
//	fetcher   one fetch: request, check, store
//	memory    blocks that found no room on disk
//	overlay   which of these replace bytes of the files for readers
type cache struct {
	opts   Options
	client *requests.Client
	name   string        // the dataset's URL, for people
	folder store.Folder  // lists the generations of the dataset
	trip   time.Duration // how long Open's first requests took, an estimate of the round trip

	files    files
	sums     checksums
	index    index
	segments segments
	evictor  *evictor
	memory   memory
	overlay  overlay
	fetcher  fetcher
	engine   engine
	fetches  fetches
	counts   counts
}

var _ mmapds.GenerationPager = (*cache)(nil)

// Home implements mmapds.GenerationPager. The name has no options: mmapds appends a generation to it.
func (d *cache) Home() string {
	name, _, _ := strings.Cut(d.folder.Name, "?")
	return name
}

// ReadGeneration implements mmapds.GenerationPager.
func (d *cache) ReadGeneration(n int) (*store.Manifest, error) {
	return d.folder.Manifest(strconv.Itoa(n))
}

// fetches has the context of all fetches, which Close ends.
type fetches struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// Open opens the dataset under a key of a bucket: a flat folder, an HDF5 file, or Zarr that penstock wrote. It reads
// the manifest and fetches no records yet, except for fields that are compressed in Zarr. From then on the bucket
// belongs to the Dataset, and is closed with it.
//
// Errors of the bucket are errors of package remote; a manifest that contradicts itself or its files is
// store.ErrCorrupt.
func Open(ctx context.Context, b remote.Bucket, key string, opts Options) (*Dataset, error) {
	opts, err := opts.resolve()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mirror: %w", err), b.Close())
	}
	c := &cache{opts: opts, client: requests.NewClient(b, opts.Policy)}
	c.name = c.client.Name(key)
	c.sums = checksums{files: &c.files, client: c.client, counts: &c.counts}
	c.index.files, c.index.sums, c.index.counts = &c.files, &c.sums, &c.counts
	c.segments.index = &c.index
	c.fetcher = fetcher{c: c, client: c.client}
	c.fetches.ctx, c.fetches.cancel = context.WithCancel(context.Background())
	d := &Dataset{cache: c}
	if d.Dataset, err = (&opener{c}).open(ctx, key); err != nil {
		return nil, errors.Join(fmt.Errorf("mirror: open %s: %w", c.name, err), d.Close())
	}
	return d, nil
}

// open plans the mirror from the metadata in the bucket, then prepares files in the cache, then opens the dataset on
// them. The time that the plan takes is the round trip of this link, by which the engine decides when to send requests
// in advance.
func (op *opener) open(ctx context.Context, key string) (*mmapds.Dataset, error) {
	if err := makeCache(op.cache.opts.CacheDir); err != nil {
		return nil, err
	}
	began := time.Now()
	plan, err := op.plan(ctx, key)
	if err != nil {
		return nil, err
	}
	op.cache.trip = time.Since(began)
	op.cache.files.dir = filepath.Join(op.cache.opts.CacheDir, plan.folder)
	if op.cache.files.root, err = openFolder(op.cache.files.dir); err != nil {
		return nil, err
	}
	op.cache.evictor = newEvictor(op.cache.opts.CacheDir, plan.folder, op.cache.opts.CacheBytes, &op.cache.segments,
		&op.cache.counts.evicted)
	whole, err := plan.prepare(ctx)
	if err != nil {
		return nil, err
	}
	op.cache.files.path = plan.path(op.cache.files.dir)
	op.settle()
	ends, err := op.fetchSplit(ctx, whole)
	if err != nil {
		return nil, err
	}
	defer ends.Release()
	options := []mmapds.Option{mmapds.WithFields(op.cache.opts.Fields...), mmapds.WithSplit(op.cache.opts.Split),
		mmapds.WithPager(op.cache)}
	if op.cache.opts.Deleted {
		options = append(options, mmapds.WithDeleted())
	}
	ds, err := mmapds.Open(op.cache.files.path, options...)
	if err != nil {
		return nil, err
	}
	op.cache.index.want(layout.Of(ds.Files()).Columns)
	op.cache.engine.unasked.Store(op.cache.index.left.Load())
	return ds, nil
}

// settle prepares the parts of the cache that reading needs.
func (op *opener) settle() {
	op.cache.index.settle(op.cache.evictor.limit)
	op.cache.segments.init(op.cache.index.grid.segments)
	op.cache.memory.limit = op.cache.opts.memoryBytes
	op.cache.engine.init(op.cache)
}

// fetchSplit fetches the offsets at which a split begins and ends in the values of ragged fields: opening a split reads
// them.
func (op *opener) fetchSplit(ctx context.Context, whole *store.Dataset) (*use, error) {
	var need []blocks
	for _, c := range layout.Of(whole).Columns {
		// in a folder each shard belongs to one split, so no offsets are needed
		if op.cache.opts.Split == "" || whole.Manifest == nil || c.Part != layout.Offsets || c.Packed || len(c.Extents) != 1 {
			continue
		}
		e := c.Extents[0]
		for _, s := range whole.Manifest.Splits {
			for _, r := range s.Ranges {
				for _, record := range []int64{0, r[0], r[1]} {
					if s.Name == op.cache.opts.Split {
						need = op.cache.index.grid.blocksOf(need, e.Path, e.Offset+8*record, 8)
					}
				}
			}
		}
	}
	u, err := op.cache.ensure(ctx, need)
	if err == nil && !u.InFiles() {
		u.Release()
		err = fmt.Errorf("%s: %s; there must be room for the offsets of a split", op.cache.opts.CacheDir,
			op.cache.memory.reason())
	}
	return u, err
}

// Name returns the place of the dataset, without credentials.
func (d *Dataset) Name() string { return d.cache.name }

// Dir returns the folder of the mirror.
func (d *Dataset) Dir() string { return d.cache.files.dir }

// Path returns the path by which a Complete mirror can be opened as a local dataset: its folder, or the file in it.
func (d *Dataset) Path() string { return d.cache.files.path }

// Complete reports whether all open fields are in the mirror and were compared with their checksums, so that no more
// requests are needed.
func (d *Dataset) Complete() bool { return d.cache.Complete() }

// Close waits for all leases, ends running fetches, and closes the mirror, whose files stay for the next time. Close of
// a closed Dataset does nothing and returns mmapds.ErrClosed.
func (d *Dataset) Close() error {
	if !d.done.CompareAndSwap(false, true) {
		return mmapds.ErrClosed
	}
	d.cache.fetches.cancel()
	var errs []error
	if d.Dataset != nil {
		errs = append(errs, d.Dataset.Close())
	}
	return errors.Join(append(errs, d.cache.close())...)
}

// close ends running fetches. No reader is left.
func (d *cache) close() error {
	d.engine.wait()
	var errs []error
	if d.index.state != nil {
		errs = append(errs, d.index.state.leave())
	}
	return errors.Join(append(errs, d.files.close(), d.client.Close())...)
}

// DescribeReads describes to people how a field is read.
func (d *Dataset) DescribeReads(field string) (how, why string, resident float64) {
	how, why, resident = d.Dataset.DescribeReads(field)
	st := d.Stats()
	how += " through a mirror"
	if why != "" {
		why += "; "
	}
	why += fmt.Sprintf("%.0f %% of it are here", 100*st.Present)
	if st.Streaming != "" {
		why += "; what finds no room is held in memory: " + st.Streaming
	}
	return how, why, resident
}
