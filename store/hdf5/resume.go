package hdf5

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// arrayState is how far a column is written at a checkpoint.
type arrayState struct {
	Values int64  `json:"values"` // bytes
	Sums   int64  `json:"sums"`   // bytes
	Block  int    `json:"block"`  // bytes in the open block
	CRC32C uint32 `json:"crc32c"` // checksum of the bytes in the open block
}

// sync waits until all rows are on disk, and returns how far the columns are written.
func (s *staged) sync() (json.RawMessage, error) {
	var list []arrayState
	for i := range s.arrays {
		a := &s.arrays[i]
		if err := errors.Join(a.values.flush(), a.sums.flush()); err != nil {
			return nil, err
		}
		n, crc := a.blocks.Open()
		list = append(list, arrayState{a.values.done, a.sums.done, n, crc})
	}
	if err := s.file.Sync(); err != nil {
		return nil, pathless(err)
	}
	return json.Marshal(list)
}

// reopen continues a file whose structure is complete, at a state that sync returned.
func reopen(with container, path string, columns []layout.Column, state json.RawMessage) (*staged, error) {
	var list []arrayState
	if err := json.Unmarshal(state, &list); err != nil || len(list) != len(columns) {
		return nil, fmt.Errorf("the state has %d columns, not %d: %w", len(list), len(columns), store.ErrCorrupt)
	}
	s := &staged{path: path, container: with, objects: arrange(columns, nil)}
	if err := with.locate(path, s.objects); err != nil {
		return nil, err
	}
	if err := s.open(columns); err != nil {
		return nil, err
	}
	for i, a := range list {
		if err := s.arrays[i].restore(a); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// restore continues an array after the rows that a checkpoint counted. The file may have later rows of the interrupted
// build, which are overwritten. The counts come from a journal, so they are compared with the size of the dataset.
func (a *array) restore(state arrayState) error {
	if state.Values < 0 || state.Values > a.values.room || state.Sums < 0 || state.Sums > a.sums.room {
		return fmt.Errorf("%s: %d bytes and %d of checksums do not fit: %w", a.meta.Path(), state.Values, state.Sums,
			store.ErrCorrupt)
	}
	a.values.done, a.sums.done = state.Values, state.Sums
	return a.blocks.Reopen(state.Block, state.CRC32C)
}

// resume continues the build in the stage, or begins one. If the interrupted build was completing its file, the
// structure of the file is put back first, and a copy of it that was being trimmed is removed.
func (w *writer) resume() error {
	if !w.checkpointer.Kept().Resumed {
		if err := w.checkpointer.Clear(); err != nil {
			return err
		}
		return w.begin()
	}
	state, undo, err := w.checkpointer.State(w.manifest)
	if err != nil {
		return err
	}
	path := w.stage.Folder.Through(stagedName)
	if undo != nil {
		if err := putBack(w.stage, undo); err != nil {
			return err
		}
	}
	if err := w.stage.Folder.Root().Remove(trimmedName); err != nil && !errors.Is(err, os.ErrNotExist) {
		return pathless(err)
	}
	w.file, err = reopen(w.container, path, fixedColumns(w.schema, w.records), state)
	return err
}

// Checkpoint implements write.Records.
func (w *writer) Checkpoint(note json.RawMessage) error {
	if w.checkpointer == nil {
		return nil
	}
	state, err := w.file.sync()
	if err == nil {
		err = w.checkpointer.Checkpoint(w.manifest, state, note)
	}
	return pathless(err)
}

// Kept implements write.Records.
func (w *writer) Kept() store.Kept { return w.kept }
