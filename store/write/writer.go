package write

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/store"
)

// Records is where a Writer puts records: the shards of a [ShardWriter], or their places in a file.
type Records interface {
	Append(r *store.Record) error
	Checkpoint(note json.RawMessage) error
	Kept() store.Kept

	// Records returns how many records the dataset has so far, including the records that it had before an append.
	Records() int64
}

// blockRecords are Records that take many by one call.
type blockRecords interface {
	Records

	// AppendBlock adds the records of b, as that many calls of Append would.
	AppendBlock(b *digest.Block) error
}

// Container makes a dataset of the written records and publishes it with Commit. Close closes all open files.
type Container interface {
	Commit(info store.Info) (*store.Manifest, error)
	Close() error
}

// NewWriter returns the Writer of a container that is built in a stage. The Writer adds the dataset's name to errors
// and keeps them: after the first error, and after Commit and Close, every call but Kept and Close returns it. Close
// leaves the stage, too.
func NewWriter(stage *Stage, records Records, c Container) store.Writer {
	return &writer{stage: stage, records: records, container: c, name: stage.Dest()}
}

// writer is the store.Writer of all containers. It remembers the first error and returns it from every later call,
// because bytes written after an error cannot be trusted.
type writer struct {
	stage     *Stage
	records   Records
	container Container
	name      string // of the dataset, for people
	free      func() // removes what Home.Spool made; may be nil
	err       error  // that every call returns
}

var (
	errCommitted = errors.New("store: the dataset is committed")
	errClosed    = errors.New("store: the writer is closed")
)

// Checkpoint implements store.Writer.
func (w *writer) Checkpoint(note json.RawMessage) error {
	if w.err == nil {
		w.keep(w.records.Checkpoint(note))
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
		w.err = fmt.Errorf("store: write %q: %w", w.name, err)
	}
}

// Kept implements store.Writer.
func (w *writer) Kept() store.Kept { return w.records.Kept() }

// Close implements store.Writer.
func (w *writer) Close() error {
	if w.err == nil {
		w.err = errClosed
	}
	err := errors.Join(w.container.Close(), w.stage.Leave())
	if w.free != nil {
		w.free()
	}
	return err
}
