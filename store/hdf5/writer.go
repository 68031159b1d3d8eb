package hdf5

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/seal"
	"github.com/penstock/penstock/store/write"
)

// writer is the container for records whose number is known in advance, so that their places in the file are fixed.
type writer struct {
	schema       store.Schema
	stage        *write.Stage
	container    container
	manifest     *write.ManifestBuilder
	records      int64 // how many records the file has room for
	file         *staged
	checkpointer *write.Checkpointer // nil without a journal
	replaces     *Replacement
	kept         store.Kept
	sums         []uint32
}

// Names of the file in its stage: with room for the records that were announced, and with the records that came.
const (
	stagedName  = "data.h5"
	trimmedName = "trimmed.h5"
)

// newWriter begins a file of at most opts.Records records, or continues the file of an interrupted build.
func newWriter(stage *write.Stage, schema store.Schema, opts Options) (*writer, error) {
	container, err := continuing(stage, opts)
	if err != nil {
		return nil, err
	}
	w := &writer{
		schema: schema, stage: stage, container: container, records: opts.Records,
		manifest: write.NewManifestBuilder(schema, opts.Splits...), replaces: opts.Replaces,
		sums: make([]uint32, len(schema.Fields)),
	}
	if opts.Journal == nil {
		return w, w.begin()
	}
	options := map[string]string{"number of records": fmt.Sprint(opts.Records), writtenBy: w.container.name()}
	checkpointer, err := write.NewCheckpointer(stage, schema, options, opts.Journal)
	if err != nil {
		return nil, err
	}
	w.checkpointer = checkpointer
	if err = w.resume(); err == nil {
		err = checkpointer.Begin()
	}
	if err != nil && w.file != nil {
		w.file.close()
	}
	w.kept = checkpointer.Kept()
	return w, err
}

func (w *writer) begin() (err error) {
	w.file, err = newStaged(w.container, w.stage.Folder.Through(stagedName), fixedColumns(w.schema, w.records), nil)
	return err
}

// Records implements write.Records.
func (w *writer) Records() int64 { return w.manifest.Records() }

// Append implements write.Records.
func (w *writer) Append(r *store.Record) error {
	if w.manifest.Records() == w.records {
		return fmt.Errorf("the file was created for %d records; create it for as many as come", w.records)
	}
	if err := w.manifest.Add(r, w.sums); err != nil {
		return err
	}
	return w.file.append(r, w.sums)
}

// Commit implements write.Container.
func (w *writer) Commit(info store.Info) (*store.Manifest, error) {
	if w.manifest.Records() == 0 {
		return nil, errors.New("no records: an empty dataset cannot be mapped, so none is written")
	}
	if err := w.file.finish(); err != nil {
		return nil, err
	}
	name := stagedName
	if w.manifest.Records() < w.records {
		name = trimmedName
		if err := w.moveTo(fixedColumns(w.schema, w.manifest.Records())); err != nil {
			return nil, err
		}
	} else if err := w.end(); err != nil {
		return nil, err
	}
	if err := w.checkpointer.Close(); err != nil {
		return nil, err
	}
	m := w.manifest.Manifest(info)
	w.replaces.next(m)
	return m, w.file.publish(m, w.stage, name)
}

// end records in the journal how to restore the file as it is now, before its container completes it: a kill in the
// middle of the completion would leave a file that neither opens nor continues.
func (w *writer) end() error {
	if w.checkpointer == nil {
		return nil
	}
	undo, err := w.file.structure()
	if err != nil {
		return err
	}
	return w.checkpointer.End(undo)
}

// publish completes the file, checks it as a reader would, seals its metadata, and gives it its name.
func (s *staged) publish(m *store.Manifest, stage *write.Stage, name string) error {
	if err := s.complete(m); err != nil {
		return err
	}
	if err := s.verify(m); err != nil {
		return err
	}
	if err := seal.Append(s.file); err != nil {
		return pathless(err)
	}
	f := s.file
	s.file = nil
	if err := write.SyncFile(f); err != nil {
		return pathless(err)
	}
	return stage.PublishFile(name)
}

// moveTo copies the records into a new file with room for the given columns, and continues in that file.
func (w *writer) moveTo(columns []layout.Column) error {
	file, err := newStaged(w.container, w.stage.Folder.Through(trimmedName), columns, nil)
	if err != nil {
		return err
	}
	if err := file.copyFrom(w.file); err != nil {
		file.close()
		return err
	}
	w.file.close()
	w.file = file
	return nil
}

// Close implements write.Container.
func (w *writer) Close() error {
	w.file.close()
	return w.checkpointer.Close()
}
