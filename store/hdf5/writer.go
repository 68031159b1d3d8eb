//go:build cgo

package hdf5

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/store"
)

// writer is the store.Writer for records whose number is known and whose places are fixed.
type writer struct {
	schema  store.Schema
	stage   *store.Stage
	ledger  *store.Ledger
	records int64 // what the structure has room for
	file    *staged
	sums    []uint32
	err     error
}

// The file's names in its stage: with room for what was announced, and for what came.
const (
	stagedName  = "data.h5"
	trimmedName = "trimmed.h5"
)

// newWriter begins a file of at most so many records.
func newWriter(stage *store.Stage, schema store.Schema, records int64) (*writer, error) {
	w := &writer{
		schema: schema, stage: stage, records: records,
		ledger: store.NewLedger(schema), sums: make([]uint32, len(schema.Fields)),
	}
	var err error
	w.file, err = newStaged(stage.Path(stagedName), fixedColumns(schema, records))
	return w, err
}

// Append implements store.Writer.
func (w *writer) Append(r *store.Record) error {
	if w.err != nil {
		return w.err
	}
	if err := w.append(r); err != nil {
		w.err = fmt.Errorf("store: write %q: record %d: %w", w.stage.Dest(), w.ledger.Records(), err)
	}
	return w.err
}

func (w *writer) append(r *store.Record) error {
	if w.ledger.Records() == w.records {
		return fmt.Errorf("the file was created for %d records; create it for as many as come", w.records)
	}
	if err := w.ledger.Add(r, w.sums); err != nil {
		return err
	}
	return w.file.append(r, w.sums)
}

// Commit implements store.Writer.
func (w *writer) Commit(info store.Info) (*store.Manifest, error) {
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

func (w *writer) commit(info store.Info) (*store.Manifest, error) {
	if w.ledger.Records() == 0 {
		return nil, errors.New("no records: an empty dataset cannot be mapped, so none is written")
	}
	if err := w.file.finish(); err != nil {
		return nil, err
	}
	name := stagedName
	if w.ledger.Records() < w.records {
		name = trimmedName
		if err := w.trim(); err != nil {
			return nil, err
		}
	}
	m := w.ledger.Manifest(info)
	return m, w.file.publish(m, w.stage, name)
}

// publish completes the file and gives it its name.
func (s *staged) publish(m *store.Manifest, stage *store.Stage, name string) error {
	if err := s.finishFile(m); err != nil {
		return err
	}
	if err := s.verify(m); err != nil {
		return err
	}
	f := s.file
	s.file = nil
	if err := store.SyncFile(f); err != nil {
		return pathless(err)
	}
	return stage.PublishFile(name)
}

// trim moves the records into a file that has no room for more.
func (w *writer) trim() error {
	file, err := newStaged(w.stage.Path(trimmedName), fixedColumns(w.schema, w.ledger.Records()))
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

// Checkpoint implements store.Writer. A file with a journal is made by a collector.
func (w *writer) Checkpoint(json.RawMessage) error { return w.err }

// Kept implements store.Writer.
func (w *writer) Kept() store.Kept { return store.Kept{} }

// Close implements store.Writer.
func (w *writer) Close() error {
	if w.err == nil {
		w.err = errors.New("store: the writer is closed")
	}
	w.file.close()
	return w.stage.Abort()
}
