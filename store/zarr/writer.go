// Package zarr writes datasets as folders of Zarr, version 3, as docs/format.md specifies them.
//
// [Create] returns a store.Writer. Records go to a staging area of plain files first, and Commit copies these into the
// chunks of arrays, as the grid of chunks depends on how many records there are. Chunks hold whole records. Without
// compression they can be mapped like a flat dataset, with zstd they are smaller and read through package chunk. Any
// reader of Zarr opens the folder: a field is an array, a ragged field a group of values and offsets, and consolidated
// metadata in the root make it one request in a bucket.
//
// [Columns] adds a column to an existing folder, for package edit.
package zarr

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// container is the write.Container of a dataset in Zarr. A write.ShardWriter keeps the records in plain files, and
// Commit copies them into the chunks of a folder.
type container struct {
	shards *write.ShardWriter
	stage  *write.Stage
	opts   Options
	base   *base // the dataset that is appended to; nil for a new one
}

// Create begins a dataset in the folder dest. With opts.Append it begins a folder that has the records of dest and
// more, and that takes the place of dest. Both folders share full shards, so an append copies no more than the last
// shard, and ragged fields.
//
// Records are collected in plain files first, and Commit copies these into the folder, so there must be space for both.
// The Writer holds up to 2 MiB of memory for each column and split.
func Create(dest string, schema store.Schema, opts Options) (store.Writer, error) {
	if err := opts.check(schema); err != nil {
		return nil, fmt.Errorf("store: create %q: %w", dest, err)
	}
	stage, err := write.OpenStage(dest, write.StageOptions{Overwrite: opts.Overwrite, Append: opts.Append,
		Keep: opts.Journal != nil})
	if err != nil {
		return nil, fmt.Errorf("store: create: %w", err)
	}
	w, err := newContainer(stage, schema, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: create %q: %w", stage.Dest(), err), stage.Leave())
	}
	return write.NewWriter(stage, w.shards, w), nil
}

func newContainer(stage *write.Stage, schema store.Schema, opts Options) (w *container, err error) {
	w = &container{stage: stage, opts: opts}
	o := write.ShardOptions{ShardBytes: opts.ShardBytes, Splits: opts.Splits, Journal: opts.journal()}
	if opts.Append {
		if w.base, err = openBase(stage.Dest()); err != nil {
			return nil, err
		}
		o.Base = w.base.data.Manifest
		if schema, err = write.Extend(o.Base, schema, opts.Splits); err != nil {
			return nil, err
		}
	}
	w.shards, err = write.NewShardWriter(stage, schema, o)
	return w, err
}

// Commit implements write.Container. It opens the finished folder as a reader would before the folder is published. An
// append then locks the old dataset, so that no change is committed to it while the new folder takes its place.
func (w *container) Commit(info store.Info) (*store.Manifest, error) {
	m, err := w.shards.Finish(info)
	if err != nil {
		return nil, err
	}
	parts := [][]layout.Column{layout.ColumnsOf(m.Schema().Specs(), m.Shards, w.stage.Folder.Through(""))}
	m.Shards = nil
	f := &folder{stage: w.stage, opts: &w.opts, base: w.base, manifest: m}
	if err := f.write(parts); err != nil {
		return nil, err
	}
	if _, err := store.OpenZarr(w.stage.Folder.Through(stagedName), store.OpenOptions{}); err != nil {
		return nil, fmt.Errorf("the dataset is not as it should be: %w", err)
	}
	if err := w.shards.Close(); err != nil {
		return nil, err
	}
	if w.base != nil {
		held, err := write.HoldForReplacement(w.stage.Dest(), w.base.data.Manifest)
		if err != nil {
			return nil, err
		}
		defer held.Close()
	}
	return m, w.stage.PublishFile(stagedName)
}

// Close implements write.Container.
func (w *container) Close() error {
	if w.base != nil {
		w.base.close()
		w.base = nil
	}
	return w.shards.Close()
}
