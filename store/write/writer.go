package write

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/store"
)

// Container is what a Writer writes into: a store.Writer without the rule that the first error is the last.
type Container interface {
	Append(r *store.Record) error
	Commit(info store.Info) (*store.Manifest, error)
	Checkpoint(note json.RawMessage) error
	Kept() store.Kept
	Close() error

	// Records returns how many records the dataset has so far, with those it is appended to.
	Records() int64
}

// NewWriter returns the Writer of a container that is built in a stage. It names and keeps errors: after the first
// one, and after Commit and Close, every call but Kept and Close returns it. Close leaves the stage, too.
func NewWriter(stage *Stage, c Container) store.Writer { return &writer{stage: stage, container: c} }

type writer struct {
	stage     *Stage
	container Container
	err       error // that every call returns
}

var (
	errCommitted = errors.New("store: the dataset is committed")
	errClosed    = errors.New("store: the writer is closed")
)

// Append implements store.Writer.
func (w *writer) Append(r *store.Record) error {
	if w.err != nil {
		return w.err
	}
	n := w.container.Records()
	if err := w.container.Append(r); err != nil {
		w.err = fmt.Errorf("store: write %q: record %d: %w", w.stage.Dest(), n, err)
	}
	return w.err
}

// Checkpoint implements store.Writer.
func (w *writer) Checkpoint(note json.RawMessage) error {
	if w.err == nil {
		w.keep(w.container.Checkpoint(note))
	}
	return w.err
}

// Commit implements store.Writer.
func (w *writer) Commit(info store.Info) (*store.Manifest, error) {
	if w.err != nil {
		return nil, w.err
	}
	m, err := w.container.Commit(info)
	if w.keep(err); err != nil {
		return nil, w.err
	}
	w.err = errCommitted
	return m, nil
}

func (w *writer) keep(err error) {
	if err != nil {
		w.err = fmt.Errorf("store: write %q: %w", w.stage.Dest(), err)
	}
}

// Kept implements store.Writer.
func (w *writer) Kept() store.Kept { return w.container.Kept() }

// Close implements store.Writer.
func (w *writer) Close() error {
	if w.err == nil {
		w.err = errClosed
	}
	return errors.Join(w.container.Close(), w.stage.Leave())
}
