package write

import (
	"encoding/json"

	"github.com/penstock/penstock/store"
)

// Checkpointer keeps the journal of a build whose records go to a Writer other than a [ShardWriter], which has a state
// of its own.
type Checkpointer struct {
	stage   *Stage
	journal *journal
	head    *buildEntry
	last    *history // nil: there is nothing to continue
}

// NewCheckpointer looks in the stage for a build that can be resumed. That build must have the same fields, options and
// inputs; otherwise the error states the differences.
func NewCheckpointer(stage *Stage, schema store.Schema, options map[string]string, j *store.Journal) (
	*Checkpointer, error) {
	k := &Checkpointer{stage: stage, head: &buildEntry{Format: 1, Fields: schema.Fields, Options: options,
		Inputs: j.Inputs}}
	if !j.Resume {
		return k, nil
	}
	h, err := readHistory(stage.Folder, k.head)
	if err != nil {
		return nil, err
	}
	if h != nil && h.last != nil {
		k.last = h
	}
	return k, nil
}

// Kept returns the state of a resumed build at its last checkpoint; the zero Kept in a new build.
func (k *Checkpointer) Kept() store.Kept {
	if k.last == nil {
		return store.Kept{}
	}
	return store.Kept{Resumed: true, Records: k.last.last.Records, Notes: k.last.notes}
}

// State restores the manifest as it was at the last checkpoint. It returns the Writer's state, and the argument of End
// if the Writer had begun to end the build. The Writer has to undo that ending, durably, before it calls Begin: Begin
// cuts the journal after the checkpoint, and the argument with it.
func (k *Checkpointer) State(l *ManifestBuilder) (state, undo json.RawMessage, err error) {
	if err := l.Restore(k.last.last.BuilderState); err != nil {
		return nil, nil, err
	}
	return k.last.last.State, k.last.undo, nil
}

// Clear forgets an interrupted build, and removes its files.
func (k *Checkpointer) Clear() error {
	k.last = nil
	return k.stage.Folder.clear(nil)
}

// Begin starts to write the journal. A resumed build continues the journal after its last checkpoint.
func (k *Checkpointer) Begin() (err error) {
	if k.last != nil {
		k.journal, err = openJournal(k.stage.Folder, k.last.size)
		return err
	}
	k.journal, err = createJournal(k.stage.Folder, k.stage.dest.parent, k.head)
	return err
}

// Checkpoint records in the journal that the records so far, whose metadata is l, are on disk. The Writer has synced
// its files before; the names of files in the stage are synced here.
func (k *Checkpointer) Checkpoint(l *ManifestBuilder, state, note json.RawMessage) error {
	if err := k.stage.Folder.sync(); err != nil {
		return err
	}
	return k.journal.commit(
		entry{Checkpoint: &checkpoint{Records: l.Records(), BuilderState: l.State(), State: state, Note: note}})
}

// End records in the journal, durably, that the build is about to end, and how to undo what the end changes.
func (k *Checkpointer) End(undo json.RawMessage) error { return k.journal.commit(entry{Undo: undo}) }

// Close closes the journal, which stays. It is safe to call twice, and on nil.
func (k *Checkpointer) Close() error {
	if k == nil || k.journal == nil {
		return nil
	}
	j := k.journal
	k.journal = nil
	return j.close()
}
