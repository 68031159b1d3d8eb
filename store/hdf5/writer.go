//go:build cgo

package hdf5

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/store"
)

// writer is the store.Writer that Create gives.
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

// Create begins a dataset of at most opts.Records records in the HDF5 file dest and takes
// the disk space for it, where the file system can do that. The Writer holds up to 2 MiB of
// memory a field.
//
// If fewer records are appended, Commit copies them into a file of the right size, for which
// there must be space: the result is the same, byte for byte, as if the number had been
// known. An error can wrap store.ErrExist, store.ErrBusy or the system's error number.
func Create(dest string, schema store.Schema, opts Options) (store.Writer, error) {
	if err := check(schema, opts); err != nil {
		return nil, fmt.Errorf("store: create %q: %w", dest, err)
	}
	stage, err := store.NewStage(dest, opts.Overwrite)
	if err != nil {
		return nil, fmt.Errorf("store: create: %w", err)
	}
	w := &writer{
		schema: schema, stage: stage, records: opts.Records,
		ledger: store.NewLedger(schema), sums: make([]uint32, len(schema.Fields)),
	}
	w.file, err = newStaged(stage.Path(stagedName), schema, opts.Records)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: create %q: %w", stage.Dest(), err), stage.Abort())
	}
	return w, nil
}

// check reports what libhdf5 must not be asked for.
func check(schema store.Schema, opts Options) error {
	if err := schema.Validate(); err != nil {
		return err
	}
	if schema.Index(booksGroup[1:]) >= 0 {
		return errors.New(`field "penstock": HDF5 files keep their books under that name; choose another one`)
	}
	if opts.Records < 1 {
		return fmt.Errorf("for %d records: an HDF5 file needs to know how many will come, at least 1", opts.Records)
	}
	total := int64(0)
	for _, f := range schema.Fields {
		n, err := payload(f, opts.Records).bytes()
		if err != nil {
			return err
		}
		if total += n; total > 1<<61 {
			return fmt.Errorf("%d records are more than a file can hold", opts.Records)
		}
	}
	return nil
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
	if err := w.file.finishFile(m); err != nil {
		return nil, err
	}
	if err := w.file.verify(m); err != nil {
		return nil, err
	}
	f := w.file.file
	w.file.file = nil
	if err := store.SyncFile(f); err != nil {
		return nil, pathless(err)
	}
	return m, w.stage.PublishFile(name)
}

// trim moves the records into a file that has no room for more.
func (w *writer) trim() error {
	file, err := newStaged(w.stage.Path(trimmedName), w.schema, w.ledger.Records())
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

// Close implements store.Writer.
func (w *writer) Close() error {
	if w.err == nil {
		w.err = errors.New("store: the writer is closed")
	}
	w.file.close()
	return w.stage.Abort()
}
