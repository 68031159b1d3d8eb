package hdf5

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// collector is the container for records whose places in the file are known only after the last record: a
// write.ShardWriter keeps them in plain files, and Commit copies these into an HDF5 file.
type collector struct {
	shards *write.ShardWriter
	stage  *write.Stage
	opts   Options
	base   *store.Dataset // the dataset that is appended to; nil for a new one
}

// newCollector begins a build that keeps records in .npy files first. It serves every build that cannot write an HDF5
// file from its beginning: the number of records, the splits or the sizes of chunks are known only at the end.
func newCollector(stage *write.Stage, schema store.Schema, opts Options) (w *collector, err error) {
	w = &collector{stage: stage, opts: opts}
	o := write.ShardOptions{Splits: opts.Splits, Journal: opts.journal(), Scratch: true, Reword: pathless}
	if opts.Append {
		if w.base, err = store.OpenHDF5(stage.Dest(), store.OpenOptions{}); err != nil {
			return nil, err
		}
		if w.base.Manifest == nil {
			return nil, fmt.Errorf("penstock did not write it, so nothing can be appended: %w", store.ErrUnsupported)
		}
		o.Base = w.base.Manifest
		if schema, err = write.Extend(o.Base, schema, opts.Splits); err != nil {
			return nil, err
		}
	}
	if opts.Replaces != nil {
		o.Cuts = []int64{opts.Records}
	}
	w.shards, err = write.NewShardWriter(stage, schema, o)
	return w, err
}

// Close implements write.Container.
func (w *collector) Close() error { return w.shards.Close() }

// Commit implements write.Container.
func (w *collector) Commit(info store.Info) (*store.Manifest, error) {
	m, err := w.commit(info)
	return m, pathless(err)
}

// commit copies the staged files into one HDF5 file and publishes it. Shards exist only in the staging directory, so
// the manifest does not list them.
func (w *collector) commit(info store.Info) (*store.Manifest, error) {
	m, err := w.shards.Finish(info)
	if err != nil {
		return nil, err
	}
	parts := [][]layout.Column{layout.ColumnsOf(m.Schema().Specs(), m.Shards, w.stage.Folder.Through(""))}
	m.Shards = nil
	w.opts.Replaces.next(m)
	file, err := w.gather(parts, m)
	if err != nil {
		return nil, err
	}
	defer file.close()
	if err := w.shards.Close(); err != nil {
		return nil, err
	}
	return m, file.publish(m, w.stage, stagedName)
}

// gather copies rows into a new file: first the rows of the dataset that is appended to, if there is such a dataset,
// and then the rows of the parts, which are the staged columns of this build. The file then lacks only the manifest.
func (w *collector) gather(parts [][]layout.Column, m *store.Manifest) (file *staged, err error) {
	var from *base
	if w.base != nil {
		if from, err = openBase(w.base, w.opts.workers()); err != nil {
			return nil, err
		}
		defer from.close()
		parts = append([][]layout.Column{layout.Of(w.base).Columns}, parts...)
	}
	columns := write.ConcatColumns(parts)
	choices, err := w.choices(columns, parts, from)
	if err != nil {
		return nil, err
	}
	recipes := make([]*encode.Recipe, len(columns))
	for k, c := range choices {
		if c != nil {
			recipes[k] = &c.Recipe
			w.note(c.note(columns[k]))
		}
	}
	if file, err = newStaged(w.opts.containers()[0], w.stage.Folder.Through(stagedName), columns, recipes); err != nil {
		return nil, err
	}
	for k := range file.arrays {
		if err = w.fill(file, k, parts, from); err != nil {
			break
		}
		if c := choices[k]; c != nil {
			write.AddStorage(m, columns[k].Name, c.storage(columns[k], file.arrays[k].stored))
		}
	}
	if err == nil {
		err = file.finish()
	}
	if err != nil {
		file.close()
		return nil, err
	}
	return file, nil
}

// choices returns how the columns are compressed: as in the base, or as the options ask. Without compression every
// choice is nil.
func (w *collector) choices(columns []layout.Column, parts [][]layout.Column, from *base) ([]*choice, error) {
	switch {
	case from != nil:
		return from.packs(columns)
	case w.opts.Replaces != nil:
		return w.opts.Replaces.choices(columns), nil
	case w.opts.Compress == nil:
		return make([]*choice, len(columns)), nil
	}
	return w.opts.Compress.packs(columns, func(k int, r encode.Recipe) ([]byte, error) { return sampleOf(parts[0], k, r) })
}

// fill copies array k into the file.
func (w *collector) fill(file *staged, k int, parts [][]layout.Column, from *base) error {
	a := &file.arrays[k]
	if a.object.Chunked == nil {
		return collect(a, parts, k)
	}
	return file.packArray(a, w.opts.workers(), w.opts.Progress, func() error {
		if from != nil {
			if err := from.copyColumn(a, &parts[0][k]); err != nil {
				return err
			}
			parts = parts[1:]
		}
		return collect(a, parts, k)
	})
}

// collect copies column k of all parts into an array.
func collect(a *array, parts [][]layout.Column, k int) error {
	return pathless(write.ConcatRows(parts, k, func(rows []byte) error { return a.append(rows, layout.CRC32C(rows)) }))
}

func (w *collector) note(text string) {
	if w.opts.Note != nil {
		w.opts.Note(text)
	}
}

// journal returns the journal of the build. Its inputs include the compression: a build that began with another
// compression is not resumed.
func (o *Options) journal() *store.Journal {
	if o.Journal == nil || o.Compress == nil {
		return o.Journal
	}
	return write.WithInput(o.Journal, "compression", o.Compress.text())
}
