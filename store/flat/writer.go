// Package flat writes datasets as folders of .npy files with a manifest, as docs/format.md specifies them.
//
// [Create] returns a store.Writer. Append it records in order, then call its Commit: only then does the folder appear
// at its path, whole and on disk. Until then it is a staging directory beside the path, which Close removes, or which a
// Journal keeps for the next attempt. Files of a dataset are never changed afterwards: an append adds shards and a new
// generation of the manifest. NumPy reads each file as it is.
package flat

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Options configures Create. The zero value is usable.
type Options struct {
	ShardBytes int64          // of the largest field of a shard; 0 means 256 MiB
	Overwrite  bool           // replace an existing dataset
	Append     bool           // add to the existing dataset, which must have this schema
	Splits     []string       // names of the splits; each Record names one
	Journal    *store.Journal // nil: a build that does not come to Commit leaves nothing
}

// container is the write.Container of a flat dataset: a folder of .npy files and a manifest.
type container struct {
	shards *write.ShardWriter
	stage  *write.Stage
	base   *store.Manifest // of the dataset that is appended to; nil for a new dataset
}

// Create begins a flat dataset at dest, or with opts.Append the next generation of one: it gets new shards, and
// readers of the present generation keep what they have. The Writer holds 1 MiB of memory for each column and
// split.
//
// To append, the schema must have the fields of the dataset. Its lists of classes and splits may have more names at
// their end. A nil Normalization stands for the dataset's own.
func Create(dest string, schema store.Schema, opts Options) (store.Writer, error) {
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("store: create %q: %w", dest, err)
	}
	stage, err := write.OpenStage(dest, write.StageOptions{Overwrite: opts.Overwrite, Append: opts.Append,
		Keep: opts.Journal != nil})
	if err != nil {
		return nil, fmt.Errorf("store: create: %w", err)
	}
	f, err := newContainer(stage, schema, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: create %q: %w", stage.Dest(), err), stage.Leave())
	}
	return write.NewWriter(stage, f.shards, f), nil
}

func newContainer(stage *write.Stage, schema store.Schema, opts Options) (*container, error) {
	f := &container{stage: stage}
	if opts.Append {
		d, err := store.OpenFlat(stage.Dest())
		if err != nil {
			return nil, err
		}
		f.base = d.Manifest
		if schema, err = write.Extend(f.base, schema, opts.Splits); err != nil {
			return nil, err
		}
	}
	var taken map[string]bool
	var err error
	if f.base != nil {
		if taken, err = write.Taken(stage.Dest()); err != nil {
			return nil, err
		}
	}
	f.shards, err = write.NewShardWriter(stage, schema, write.ShardOptions{
		ShardBytes: opts.ShardBytes, Splits: opts.Splits, Journal: opts.Journal, Base: f.base, Taken: taken,
	})
	return f, err
}

// Commit implements write.Container.
func (f *container) Commit(info store.Info) (*store.Manifest, error) {
	m, err := f.shards.Finish(info)
	if err != nil {
		return nil, err
	}
	if f.base != nil {
		m.Parent = f.base.Generation
	}
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if err := f.stage.Folder.WriteFile(layout.ManifestName, text); err != nil {
		return nil, err
	}
	if err := f.shards.Close(); err != nil {
		return nil, err
	}
	if f.base == nil {
		return m, f.stage.PublishFolder()
	}
	return m, f.stage.PublishGeneration(f.base, newFiles(m, f.base)...)
}

// Close implements write.Container.
func (f *container) Close() error { return f.shards.Close() }

// newFiles lists the files of the shards of m that base has not.
func newFiles(m, base *store.Manifest) (names []string) {
	for _, s := range m.Shards[len(base.Shards):] {
		for _, f := range s.Files {
			names = append(names, f.Name)
		}
	}
	return names
}
