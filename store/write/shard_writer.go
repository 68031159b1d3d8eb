package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// ShardOptions configures NewShardWriter: the options that the writers of all formats share.
type ShardOptions struct {
	ShardBytes int64           // of the largest field of a shard; 0 means 256 MiB
	Splits     []string        // names of the splits, in the order that they get; each record then names one
	Journal    *store.Journal  // nil: a build that ends early leaves nothing
	Base       *store.Manifest // of the dataset that the records are appended to; nil for a new one
	Cuts       []int64         // records of each shard, in the order in which all come; nil lets ShardBytes decide
	Gone       []uint64        // records without values, the same when a column is resumed
	Appended   int             // the generation that has the last of the records, the same when a column is resumed
	Taken      map[string]bool // names that files of other generations have, so that new ones cannot

	// Scratch says that the shards are copied from the stage and then removed, so that they need not be on disk. With a
	// Journal they are, as a later build may continue with them.
	Scratch bool

	// Frame is the frame of the files, of a schema with one field that is not ragged; nil makes .npy files.
	Frame *Frame

	Reword func(error) error // words the errors of files for a container whose users do not see these; may be nil
}

func (o *ShardOptions) reworded(err error) error {
	if err == nil || o.Reword == nil {
		return err
	}
	return o.Reword(err)
}

// ShardWriter makes the shards of a dataset inside a Stage: package flat publishes them as they
// are, package hdf5 copies them into a file. It holds 1 MiB of memory a column and split.
type ShardWriter struct {
	schema   store.Schema
	opts     ShardOptions
	stage    *Stage
	manifest *ManifestBuilder
	sections []section // by split; one without splits
	journal  *journal  // nil: none is kept
	kept     store.Kept
	sums     []uint32
}

const defaultShardBytes = 256 << 20

// ShardRecords returns how many records a full shard has; of a schema without a fixed field, [math.MaxInt64]. 0 bytes
// stand for 256 MiB.
func ShardRecords(s store.Schema, shardBytes int64) int64 {
	if shardBytes <= 0 {
		shardBytes = defaultShardBytes
	}
	return newShardSize(s, shardBytes).records
}

// NewShardWriter begins a build in a stage, or continues an existing one if opts.Journal asks for
// it; otherwise it clears the stage.
func NewShardWriter(stage *Stage, schema store.Schema, opts ShardOptions) (*ShardWriter, error) {
	if opts.ShardBytes <= 0 {
		opts.ShardBytes = defaultShardBytes
	}
	b := &ShardWriter{schema: schema, opts: opts, stage: stage, sums: make([]uint32, len(schema.Fields))}
	err := layout.CheckSplitNames(opts.Splits)
	if err == nil {
		err = b.start()
	}
	if err == nil && opts.Journal != nil {
		err = b.resume()
	} else if err == nil {
		err = stage.Folder.clear(nil)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// start makes the manifest and sections of a build that has no records yet.
func (w *ShardWriter) start() error {
	shards := 0
	w.manifest = NewManifestBuilder(w.schema, w.opts.Splits...)
	if base := w.opts.Base; base != nil {
		shards = len(base.Shards)
		if err := w.manifest.Restore(base.BuilderState); err != nil {
			return err
		}
	}
	size := newShardSize(w.schema, w.opts.ShardBytes)
	folder := stagedFiles{w.stage.Folder, w.opts.Scratch && w.opts.Journal == nil}
	if w.opts.Cuts != nil {
		w.sections = []section{newSection(w.schema, folder, size, "", 0)}
		w.sections[0].cuts, w.sections[0].arrays[0].frame = w.opts.Cuts, w.opts.Frame
		return nil
	}
	if len(w.opts.Splits) == 0 {
		w.sections = []section{newSection(w.schema, folder, size, "", shards)}
	}
	for _, name := range w.opts.Splits {
		w.sections = append(w.sections, newSection(w.schema, folder, size, name+"+", 0))
	}
	return nil
}

// Records returns how many records the dataset has so far, with those it is appended to.
func (w *ShardWriter) Records() int64 { return w.manifest.Records() }

// Kept returns what a resumed build had at its last checkpoint; nothing in a new one.
func (w *ShardWriter) Kept() store.Kept { return w.kept }

// Checkpoint makes all records durable, and a note of the caller's with them. Without a
// journal it does nothing.
func (w *ShardWriter) Checkpoint(note json.RawMessage) error {
	if w.journal == nil {
		return nil
	}
	return w.opts.reworded(w.checkpoint(note))
}

// checkpoint makes all records up to now durable, then the journal's entry that says so. Files come first: an entry
// that is on disk before its records would have a resumed build continue behind a hole.
func (w *ShardWriter) checkpoint(note json.RawMessage) error {
	c := checkpoint{Records: w.manifest.Records(), BuilderState: w.manifest.State(), Note: note}
	for i := range w.sections {
		if err := w.sections[i].sync(); err != nil {
			return err
		}
		c.Sections = append(c.Sections, w.sections[i].state())
	}
	if err := w.stage.Folder.sync(); err != nil {
		return err
	}
	return w.journal.commit(entry{Checkpoint: &c})
}

// Finish ends the build and returns the manifest, whose last shards have the files that now
// are in the stage under their names. Those of Base come before them.
func (w *ShardWriter) Finish(info store.Info) (*store.Manifest, error) {
	if w.manifest.Records() == 0 {
		return nil, errors.New("no records: an empty dataset cannot be mapped, so none is written")
	}
	for i := range w.sections {
		if w.sections[i].open == 0 {
			continue
		}
		if err := w.sections[i].closeShard(); err != nil {
			return nil, err
		}
	}
	m := w.manifest.Manifest(info)
	renames := w.arrange(m)
	if base := w.opts.Base; base != nil {
		if err := follow(m, base); err != nil {
			return nil, err
		}
	}
	setVersion(m)
	if w.journal != nil {
		if err := w.journal.commit(entry{Renames: renames}); err != nil {
			return nil, err
		}
	}
	for _, r := range renames {
		if r.From == r.To {
			continue
		}
		if err := w.stage.Folder.root.Rename(r.From, r.To); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// arrange enters the shards of all sections, one after the other, and where their records
// come to be. It returns which file gets which name.
func (w *ShardWriter) arrange(m *store.Manifest) (renames []rename) {
	next, shards := int64(0), 0
	if base := w.opts.Base; base != nil {
		next, shards = base.Records, len(base.Shards)
		m.Shards = append(m.Shards, base.Shards...)
	}
	for i := range w.sections {
		s := &w.sections[i]
		first := next
		for _, shard := range s.shards {
			shard, moved := s.renumber(shard, next, shards, w.freeName)
			renames = append(renames, moved...)
			m.Shards = append(m.Shards, shard)
			next += shard.Count
			shards++
		}
		if len(w.opts.Splits) > 0 && w.opts.Cuts == nil {
			addSplit(m, w.opts.Splits[i], w.opts.Base, first, next)
		}
	}
	return renames
}

// freeName returns the name of a file of the dataset: another one where a generation has a file of that name that is no
// longer in the newest one.
func (w *ShardWriter) freeName(name string) string {
	if w.opts.Taken[name] {
		return layout.Tagged(name, fmt.Sprintf("g%d", w.opts.Base.Generation+1))
	}
	return name
}

// renumber returns a shard with the number and first record that it has in the dataset.
func (s *section) renumber(shard store.Shard, first int64, number int, free func(string) string) (store.Shard,
	[]rename) {
	out := store.Shard{First: first, Count: shard.Count}
	var moved []rename
	for k := range s.columns {
		old := shard.Files[2*k : 2*k+2]
		payload, sums := s.columns[k].Files(number, 0)
		for j, name := range []string{payload.Name, sums.Name} {
			f := old[j]
			name = free(name)
			moved = append(moved, rename{s.prefix + f.Name, name})
			f.Name = name
			out.Files = append(out.Files, f)
		}
	}
	return out, moved
}

// addSplit enters a split with the records that it had in base and [first, end).
func addSplit(m *store.Manifest, name string, base *store.Manifest, first, end int64) {
	s := store.Split{Name: name, Ranges: [][2]int64{}}
	if base != nil && len(m.Splits) < len(base.Splits) {
		s.Ranges = append(s.Ranges, base.Splits[len(m.Splits)].Ranges...)
	}
	if end > first {
		s.Ranges = append(s.Ranges, [2]int64{first, end})
	}
	m.Splits = append(m.Splits, s)
}

// setVersion gives a manifest the first version whose readers know all that is in it.
func setVersion(m *store.Manifest) {
	specs := m.Schema().Specs()
	m.Version = layout.VersionOf(specs)
	switch {
	case m.Deleted != nil:
		m.Version = max(m.Version, layout.VersionDeleted)
	case layout.Renamed(specs, m.Shards), len(m.Arrays) > 0:
		m.Version = max(m.Version, layout.VersionRenamed)
	}
}

// follow makes m the next generation of base.
func follow(m, base *store.Manifest) (err error) {
	m.Generation, m.Change = base.Generation+1, &store.Change{Operation: "append"}
	if m.Recipe == nil {
		m.Recipe = base.Recipe
	}
	if m.Source == nil {
		m.Source = base.Source
	}
	m.Skipped = append(append([]store.Skipped(nil), base.Skipped...), m.Skipped...)
	if m.Deleted, err = base.Deleted.Extended(base.Records, m.Records); err == nil {
		m.ID, err = m.Deleted.ID(m.ID, m.Records)
	}
	return err
}

// Close lets go of the build's files, which stay in the stage.
func (w *ShardWriter) Close() error {
	for i := range w.sections {
		w.sections[i].abandon()
	}
	if w.journal == nil {
		return nil
	}
	j := w.journal
	w.journal = nil
	return j.close()
}

// undo gives the files of a commit that did not come to its end their old names back. Those
// of an append may be in the dataset's folder already.
func (w *ShardWriter) undo(renames []rename) error {
	folders := []*os.Root{w.stage.Folder.root}
	if w.opts.Base != nil {
		dest, err := private.Real(w.stage.dest.parent, w.stage.dest.name())
		if err == nil {
			defer dest.Close()
			folders = append(folders, dest)
		}
	}
	for _, r := range renames {
		if filepath.Base(r.From) != r.From || filepath.Base(r.To) != r.To {
			return fmt.Errorf("file names %q, %q: %w", r.From, r.To, store.ErrCorrupt)
		}
		for _, folder := range folders {
			if _, err := w.stage.Folder.root.Lstat(r.From); err == nil {
				break
			}
			if err := private.Move(folder, r.To, w.stage.Folder.root, r.From); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// resume continues the build that is in the stage, or begins one.
func (w *ShardWriter) resume() error {
	head := w.head()
	var h *history
	var err error
	if w.opts.Journal.Resume {
		h, err = readHistory(w.stage.Folder, head)
	}
	if err != nil {
		return err
	}
	if h == nil {
		if err := w.stage.Folder.clear(nil); err != nil {
			return err
		}
		w.journal, err = createJournal(w.stage.Folder, w.stage.dest.parent, head)
		return err
	}
	if err := w.restore(h); err != nil {
		return notResumed(err)
	}
	if err := w.stage.Folder.sync(); err != nil { // before the journal forgets what was undone
		return err
	}
	w.journal, err = openJournal(w.stage.Folder, h.size)
	return err
}

// baseGeneration is the option of a build that appends: the number of the generation that it appends to.
const baseGeneration = "generation appended to"

// head describes this build.
func (w *ShardWriter) head() *buildEntry {
	o := w.opts
	options := map[string]string{"shard size": fmt.Sprint(o.ShardBytes), "splits": fmt.Sprintf("%q", o.Splits),
		"appended to": "nothing"}
	if o.Base != nil {
		options["appended to"] = "dataset " + o.Base.ID
		options[baseGeneration] = strconv.Itoa(o.Base.Generation)
	}
	if o.Cuts != nil {
		options["shards"] = layout.HexCRC(layout.CRC32C(fmt.Append(nil, o.Cuts)))
	}
	if o.Frame != nil {
		options["files"] = o.Frame.Name
	}
	if o.Gone != nil {
		options["set of deleted records"] = layout.HexCRC(layout.CRC32C(fmt.Append(nil, o.Gone)))
	}
	if o.Appended > 0 {
		options["generation of the last append"] = strconv.Itoa(o.Appended)
	}
	return &buildEntry{Format: 1, Fields: w.schema.Fields, Options: options, Inputs: o.Journal.Inputs}
}

// restore brings the stage and the manifest back to the last checkpoint.
func (w *ShardWriter) restore(h *history) error {
	keep := map[string]bool{JournalName: true}
	if h.last == nil {
		return w.stage.Folder.clear(keep)
	}
	if err := w.undo(h.renames); err != nil {
		return err
	}
	w.manifest = NewManifestBuilder(w.schema, w.opts.Splits...)
	if err := w.manifest.Restore(h.last.BuilderState); err != nil {
		return err
	}
	if len(h.last.Sections) != len(w.sections) || h.last.Records != w.manifest.Records() {
		return fmt.Errorf("its last checkpoint is of another build: %w", store.ErrCorrupt)
	}
	for i := range w.sections {
		if err := w.sections[i].restore(h.last.Sections[i], h.shards[i], keep); err != nil {
			return err
		}
	}
	w.kept = store.Kept{Resumed: true, Records: h.last.Records, Notes: h.notes}
	if w.opts.Base != nil {
		w.kept.Records -= w.opts.Base.Records
	}
	return w.stage.Folder.clear(keep)
}
