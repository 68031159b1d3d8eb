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
	ShardBytes int64           // size of the largest field of a shard; 0 means 256 MiB
	Splits     []string        // names of the splits, in the order that they get; each record then names one
	Journal    *store.Journal  // nil: a build that ends early leaves nothing
	Base       *store.Manifest // of the dataset that the records are appended to; nil for a new one
	Cuts       []int64         // records of each shard, in the order in which all come; nil lets ShardBytes decide
	Gone       []uint64        // records without values, the same when a column is resumed
	Appended   int             // the generation that has the last of the records, the same when a column is resumed
	Taken      map[string]bool // names that files of other generations have, which new files must not get

	// Scratch says that the shards are copied from the stage and then removed, so that they need not be on disk. With a
	// Journal they are synced all the same, as a later build may continue with them.
	Scratch bool

	// Frame is the frame of the files, of a schema with one field that is not ragged; nil makes .npy files.
	Frame *Frame

	// Reword changes the errors of files, for a container whose users do not see these files. It may be nil.
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
		w.sections = append(w.sections, newSection(w.schema, folder, size, layout.FileName(name)+"+", 0))
	}
	return nil
}

// Records returns how many records the dataset has so far, with those it is appended to.
func (w *ShardWriter) Records() int64 { return w.manifest.Records() }

// Kept returns the state of a resumed build at its last checkpoint; the zero Kept in a new build.
func (w *ShardWriter) Kept() store.Kept { return w.kept }

// Checkpoint makes all records durable, and with them a note of the caller. Without a
// journal it does nothing.
func (w *ShardWriter) Checkpoint(note json.RawMessage) error {
	if w.journal == nil {
		return nil
	}
	return w.opts.reworded(w.checkpoint(note))
}

// checkpoint makes all records so far durable, and then the journal's entry that says so. The files come first: an
// entry that is on disk before its records would let a resumed build continue behind a hole.
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

// Finish ends the build and returns the manifest. The shards of Base come first in the manifest, then the new shards,
// whose files are in the stage under their final names. The journal lists the renames, on disk, before the first of
// them: a resumed build undoes the renames that a crash has interrupted.
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

// arrange lists the shards of all sections in the manifest, one section after the other, and gives them their final
// record and shard numbers. It returns the renames of files that the new numbers require.
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

// freeName returns the name of a new file of the dataset. If an earlier generation has a file of that name, which the
// newest one no longer lists, the new file gets a tag with its generation.
func (w *ShardWriter) freeName(name string) string {
	if w.opts.Taken[name] {
		return layout.Tagged(name, fmt.Sprintf("g%d", w.opts.Base.Generation+1))
	}
	return name
}

// renumber returns a shard with its final number and first record in the dataset, and the renames of its files.
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

// addSplit enters a split with the records that it had in base and the records [first, end).
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

// setVersion gives a manifest the first version of the format whose readers know everything in it. A higher version
// would keep older readers from datasets that they can read.
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

// follow makes m the next generation of base after an append. What the append does not say, such as the recipe, stays.
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

// Close closes the files of the build, which stay in the stage.
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

// undo gives files back the names that they had before an interrupted commit. The files of an append may be in the
// folder of the dataset already. Names come from the journal, so a name that leads into another folder is refused.
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

// resume continues the build in the stage if the journal asks for it, and otherwise begins a new build.
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
	if err := w.stage.Folder.sync(); err != nil { // before the journal is cut and forgets the undone renames
		return err
	}
	w.journal, err = openJournal(w.stage.Folder, h.size)
	return err
}

// baseGeneration is the option of a build that appends: the number of the generation that it appends to.
const baseGeneration = "generation appended to"

// head describes this build for the journal: everything that must be equal in a build that resumes it.
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

// restore brings the stage and the manifest back to the last checkpoint, and removes all files that the checkpoint does
// not know.
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
