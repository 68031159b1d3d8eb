package store

import (
	"encoding/json"
	"errors"
	"fmt"
)

// FlatOptions configures CreateFlat. The zero value is usable.
type FlatOptions struct {
	ShardBytes int64    // of the largest field of a shard; 0 means 256 MiB
	Overwrite  bool     // replace a dataset that is there
	Append     bool     // add to the dataset that is there, which must have this schema
	Splits     []string // names of the splits; each Record names one
	Journal    *Journal // nil: a build that does not come to Commit leaves nothing
}

// FlatWriter writes a flat dataset: a folder of .npy files and a manifest.
type FlatWriter struct {
	stage  *Stage
	build  *Build
	append bool
	keep   bool // the stage, if there is no Commit
	err    error
}

// CreateFlat begins a flat dataset at dest, or with opts.Append the next generation of one:
// it gets new shards, and readers of the present generation keep what they have. It holds
// 1 MiB of memory a column and split.
//
// To append, the fields must be those of the dataset, where classes and splits may be more
// at the end of their lists, and a Normalization that is nil is taken from it.
func CreateFlat(dest string, schema Schema, opts FlatOptions) (*FlatWriter, error) {
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("store: create %q: %w", dest, err)
	}
	stage, err := OpenStage(dest, StageOptions{Overwrite: opts.Overwrite, Append: opts.Append, Keep: opts.Journal != nil})
	if err != nil {
		return nil, fmt.Errorf("store: create: %w", err)
	}
	w := &FlatWriter{stage: stage, append: opts.Append, keep: opts.Journal != nil}
	if w.build, err = newFlatBuild(stage, schema, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("store: create %q: %w", stage.Dest(), err), w.leave())
	}
	return w, nil
}

func newFlatBuild(stage *Stage, schema Schema, opts FlatOptions) (*Build, error) {
	o := BuildOptions{ShardBytes: opts.ShardBytes, Splits: opts.Splits, Journal: opts.Journal}
	if !opts.Append {
		return NewBuild(stage, schema, o)
	}
	base, err := OpenFlat(stage.Dest())
	if err != nil {
		return nil, err
	}
	o.Base = base.Manifest
	if schema, err = base.Manifest.Extend(schema, opts.Splits); err != nil {
		return nil, err
	}
	return NewBuild(stage, schema, o)
}

// Append implements Writer.
func (w *FlatWriter) Append(r *Record) error {
	if w.err != nil {
		return w.err
	}
	n := w.build.Records()
	if err := w.build.Append(r); err != nil {
		w.err = fmt.Errorf("store: write %q: record %d: %w", w.stage.Dest(), n, err)
	}
	return w.err
}

// Checkpoint implements Writer.
func (w *FlatWriter) Checkpoint(note json.RawMessage) error {
	if w.err != nil {
		return w.err
	}
	if err := w.build.Checkpoint(note); err != nil {
		w.err = fmt.Errorf("store: write %q: %w", w.stage.Dest(), err)
	}
	return w.err
}

// Kept implements Writer.
func (w *FlatWriter) Kept() Kept { return w.build.Kept() }

// Commit implements Writer.
func (w *FlatWriter) Commit(info Info) (*Manifest, error) {
	if w.err != nil {
		return nil, w.err
	}
	m, err := w.commit(info)
	if err != nil {
		w.err = fmt.Errorf("store: write %q: %w", w.stage.Dest(), err)
		return nil, w.err
	}
	w.err = errors.New("store: the dataset is committed")
	return m, nil
}

func (w *FlatWriter) commit(info Info) (*Manifest, error) {
	m, err := w.build.Finish(info)
	if err != nil {
		return nil, err
	}
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if err := w.stage.writeFile(ManifestName, text); err != nil {
		return nil, err
	}
	if err := w.build.Close(); err != nil {
		return nil, err
	}
	if !w.append {
		return m, w.stage.PublishFolder()
	}
	return m, w.stage.PublishInto(append(w.newFiles(m), ManifestName)...)
}

// newFiles lists the files of the shards that this build made.
func (w *FlatWriter) newFiles(m *Manifest) (names []string) {
	for _, s := range m.Shards[len(w.build.opts.Base.Shards):] {
		for _, f := range s.Files {
			names = append(names, f.Name)
		}
	}
	return names
}

// Close implements Writer.
func (w *FlatWriter) Close() error {
	return errors.Join(w.build.Close(), w.leave())
}

func (w *FlatWriter) leave() error {
	if w.keep {
		return w.stage.Release()
	}
	return w.stage.Abort()
}
