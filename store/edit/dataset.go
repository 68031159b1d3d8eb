package edit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/write/bucket"
)

// Dataset is a dataset that can be changed, in a folder or in a bucket. Several goroutines may call its methods at
// once.
type Dataset struct {
	name   string // for messages
	home   write.Home
	lists  lister
	local  bool
	bucket *bucket.Home // nil for a folder
	remote *inBucket    // nil for a folder, too
}

// inBucket is the place of a dataset in a bucket.
type inBucket struct {
	ctx    context.Context
	bucket remote.Bucket
	key    string
}

// lister reads the generations of a dataset.
type lister interface {
	Manifest(generation string) (*store.Manifest, error) // a number or a tag; "" is the newest
	Generation(n int) (*store.Manifest, time.Time, error)
	Generations() ([]int, error)
	Tags() ([]store.Tag, error)
}

// At returns the dataset at a local path. For an HDF5 file, records and manifest can be read, and every change is
// refused.
func At(path string) *Dataset {
	return &Dataset{name: path, home: write.Dir(path), lists: local(path), local: true}
}

// InBucket returns the dataset, flat or Zarr, under a key of a bucket, which the caller closes. The context ends all
// requests of the methods. Columns are built in a folder of this user in spool, the system's folder of temporary files
// if spool is empty, and then sent.
func InBucket(ctx context.Context, b remote.Bucket, key, spool string) *Dataset {
	home := bucket.New(ctx, b, key, spool)
	return &Dataset{name: remote.NameOf(b, key), home: home, lists: home.Folder(), bucket: home,
		remote: &inBucket{ctx, b, key}}
}

// Which says which records are opened.
type Which int

// Live are the records that are not deleted, All are all stored records.
const (
	Live Which = iota
	All
)

// Records opens the records of a generation, 0 for the newest generation, with some fields; nil means all fields.
// Records in a bucket are fetched when they are read. The caller calls end when the records are no longer needed.
func (d *Dataset) Records(generation int, fields []string, which Which) (ds *mmapds.Dataset, end func() error,
	err error) {
	if d.local {
		options := []mmapds.Option{mmapds.WithFields(fields...), mmapds.WithGeneration(generation)}
		if which == All {
			options = append(options, mmapds.WithDeleted())
		}
		if ds, err = mmapds.Open(d.name, options...); err != nil {
			return nil, nil, err
		}
		return ds, ds.Close, nil
	}
	key := d.remote.key
	if generation > 0 {
		key = fmt.Sprintf("%s@%d", key, generation)
	}
	m, err := mirror.Open(d.remote.ctx, lent{d.remote.bucket}, key, mirror.Options{Fields: fields, Deleted: which == All})
	if err != nil {
		return nil, nil, err
	}
	return m.Dataset, m.Close, nil
}

// lent is a bucket whose Close does nothing: the reader that it is lent to closes its bucket, and the caller still
// needs it.
type lent struct{ remote.Bucket }

func (lent) Close() error { return nil }

// Manifest returns the manifest of a generation, by its number or tag; "" is the newest.
func (d *Dataset) Manifest(generation string) (*store.Manifest, error) {
	m, err := d.lists.Manifest(generation)
	if err != nil {
		return nil, d.notFlat(err)
	}
	return m, nil
}

// AppendOptions configures Append. The zero value is usable.
type AppendOptions struct {
	ShardBytes int64          // size of the largest field of a shard; 0 means 256 MiB
	Splits     []string       // the dataset's splits, then new ones; each Record names one
	Journal    *store.Journal // nil: an append that does not reach Commit leaves nothing on this machine
}

// Append begins an append to a flat dataset in a bucket; in a folder, flat.Create and its siblings append. Records are
// built in the spool, in shards that Commit sends, and so need room there. The schema must have the fields of the
// dataset, but the lists of classes and splits may have more names at their end. If another writer commits first, the
// records follow the other writer's records, or Commit fails if they no longer fit.
func (d *Dataset) Append(schema store.Schema, opts AppendOptions) (store.Writer, error) {
	if d.bucket == nil {
		return nil, fmt.Errorf("store: append to %q: it is on this machine, where Create of package flat, zarr or hdf5 "+
			"appends: %w", d.name, store.ErrUnsupported)
	}
	return write.Append(d.home, schema, write.ShardOptions{ShardBytes: opts.ShardBytes, Splits: opts.Splits,
		Journal: opts.Journal})
}

// InBucket reports whether the dataset is in a bucket.
func (d *Dataset) InBucket() bool { return d.bucket != nil }

// check refuses a dataset without generations.
func (d *Dataset) check() error {
	if d.local {
		return notFlat(d.name)
	}
	return d.home.Check()
}

// notFlat returns err, the error of reading a manifest, or a more helpful error if the dataset has no generations at
// all.
func (d *Dataset) notFlat(err error) error {
	if d.local {
		return NotFlat(layout.Folder(d.name), err)
	}
	if errors.Is(err, fs.ErrNotExist) && d.bucket.IsObject() {
		return d.bucket.ErrObject()
	}
	return err
}

// local is the path of a local dataset, whose generations it lists.
type local string

func (p local) Manifest(generation string) (*store.Manifest, error) {
	if generation == "" {
		return store.ReadManifest(string(p))
	}
	return store.ReadManifest(fmt.Sprintf("%s@%s", p, generation))
}

func (p local) Generation(n int) (*store.Manifest, time.Time, error) {
	return store.ReadGeneration(string(p), n)
}

func (p local) Generations() ([]int, error) { return store.Generations(string(p)) }

func (p local) Tags() ([]store.Tag, error) { return store.Tags(string(p)) }
