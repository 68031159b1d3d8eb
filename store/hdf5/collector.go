//go:build cgo

package hdf5

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/store"
)

// collector is the store.Writer for records whose places are not known before the last one
// has come: a store.Build keeps them in arrays, and Commit copies these into a file.
type collector struct {
	stage *store.Stage
	build *store.Build
	base  *store.Dataset // what is appended to, or nil
	keep  bool           // the stage, if there is no Commit
	err   error
}

func newCollector(stage *store.Stage, schema store.Schema, opts Options) (w *collector, err error) {
	w = &collector{stage: stage, keep: opts.Journal != nil}
	o := store.BuildOptions{Splits: opts.Splits, Journal: opts.Journal}
	if opts.Append {
		if w.base, err = store.OpenHDF5(stage.Dest(), nil); err != nil {
			return nil, err
		}
		if w.base.Manifest == nil {
			return nil, fmt.Errorf("penstock did not write it, so nothing can be appended: %w", store.ErrUnsupported)
		}
		o.Base = w.base.Manifest
		if schema, err = o.Base.Extend(schema, opts.Splits); err != nil {
			return nil, err
		}
	}
	w.build, err = store.NewBuild(stage, schema, o)
	return w, err
}

// Append implements store.Writer.
func (w *collector) Append(r *store.Record) error {
	if w.err != nil {
		return w.err
	}
	n := w.build.Records()
	if err := w.build.Append(r); err != nil {
		w.err = fmt.Errorf("store: write %q: record %d: %w", w.stage.Dest(), n, pathless(err))
	}
	return w.err
}

// Checkpoint implements store.Writer.
func (w *collector) Checkpoint(note json.RawMessage) error {
	if w.err != nil {
		return w.err
	}
	if err := w.build.Checkpoint(note); err != nil {
		w.err = fmt.Errorf("store: write %q: %w", w.stage.Dest(), pathless(err))
	}
	return w.err
}

// Kept implements store.Writer.
func (w *collector) Kept() store.Kept { return w.build.Kept() }

// Commit implements store.Writer.
func (w *collector) Commit(info store.Info) (*store.Manifest, error) {
	if w.err != nil {
		return nil, w.err
	}
	m, err := w.commit(info)
	if err != nil {
		w.err = fmt.Errorf("store: write %q: %w", w.stage.Dest(), pathless(err))
		return nil, w.err
	}
	w.err = errors.New("store: the dataset is committed")
	return m, nil
}

func (w *collector) commit(info store.Info) (*store.Manifest, error) {
	m, err := w.build.Finish(info)
	if err != nil {
		return nil, err
	}
	parts := [][]store.Column{store.ColumnsOf(m.Schema(), m.Shards, w.stage.Path(""))}
	if w.base != nil {
		parts = append([][]store.Column{w.base.Columns}, parts...)
	}
	m.Shards = nil
	file, err := newStaged(w.stage.Path(stagedName), joined(parts))
	if err != nil {
		return nil, err
	}
	defer file.close()
	for k := range file.arrays {
		if err := file.arrays[k].collect(parts, k); err != nil {
			return nil, err
		}
	}
	if err := file.finish(); err != nil {
		return nil, err
	}
	if err := w.build.Close(); err != nil {
		return nil, err
	}
	return m, file.publish(m, w.stage, stagedName)
}

// Close implements store.Writer.
func (w *collector) Close() error {
	if w.err == nil {
		w.err = errors.New("store: the writer is closed")
	}
	leave := w.stage.Abort
	if w.keep {
		leave = w.stage.Release
	}
	return errors.Join(w.build.Close(), leave())
}
