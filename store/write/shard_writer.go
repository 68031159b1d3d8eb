package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

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

// shardSize says when a shard is full: at a multiple of step records, when it has the given number
// of records or a ragged field has the given number of bytes.
type shardSize struct {
	records, step, bytes int64
}

// newShardSize finds sizes at which a full shard of every fixed field is whole pages, so
// that the shards of a field can be mapped side by side.
func newShardSize(s store.Schema, shardBytes int64) shardSize {
	step, largest := int64(1), int64(0)
	for _, f := range s.Fields {
		if f.Ragged {
			continue
		}
		size := int64(f.RecordBytes())
		largest = max(largest, size)
		step = lcm(step, layout.HeaderBytes/gcd(layout.HeaderBytes, size))
	}
	if largest == 0 {
		return shardSize{math.MaxInt64, 1, shardBytes}
	}
	return shardSize{max(1, shardBytes/largest/step) * step, step, shardBytes}
}

// ShardRecords returns how many records a full shard has; of a schema without a fixed field, [math.MaxInt64]. 0 bytes
// stand for 256 MiB.
func ShardRecords(s store.Schema, shardBytes int64) int64 {
	if shardBytes <= 0 {
		shardBytes = defaultShardBytes
	}
	return newShardSize(s, shardBytes).records
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int64) int64 { return a / gcd(a, b) * b }

// NewShardWriter begins a build in a stage, or continues one that is there if opts.Journal asks
// for it; otherwise it clears the stage.
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
		err = stage.clear(nil)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// start makes the manifest and sections of a build that has no records yet.
func (b *ShardWriter) start() error {
	shards := 0
	b.manifest = NewManifestBuilder(b.schema, b.opts.Splits...)
	if base := b.opts.Base; base != nil {
		shards = len(base.Shards)
		if err := b.manifest.Restore(base.BuilderState); err != nil {
			return err
		}
	}
	size := newShardSize(b.schema, b.opts.ShardBytes)
	if len(b.opts.Splits) == 0 {
		b.sections = []section{newSection(b.schema, b.stage, size, "", shards)}
	}
	for _, name := range b.opts.Splits {
		b.sections = append(b.sections, newSection(b.schema, b.stage, size, name+"+", 0))
	}
	return nil
}

// Records returns how many records the dataset has so far, with those it is appended to.
func (b *ShardWriter) Records() int64 { return b.manifest.Records() }

// Kept returns what a resumed build had at its last checkpoint; nothing in a new one.
func (b *ShardWriter) Kept() store.Kept { return b.kept }

// Checkpoint makes all records durable, and a note of the caller's with them. Without a
// journal it does nothing.
func (b *ShardWriter) Checkpoint(note json.RawMessage) error {
	if b.journal == nil {
		return nil
	}
	return b.opts.reworded(b.checkpoint(note))
}

func (b *ShardWriter) checkpoint(note json.RawMessage) error {
	c := checkpoint{Records: b.manifest.Records(), BuilderState: b.manifest.State(), Note: note}
	for i := range b.sections {
		if err := b.sections[i].sync(); err != nil {
			return err
		}
		c.Sections = append(c.Sections, b.sections[i].state())
	}
	if err := b.stage.sync(); err != nil {
		return err
	}
	return b.journal.commit(entry{Checkpoint: &c})
}

// Finish ends the build and returns the manifest, whose last shards have the files that now
// are in the stage under their names. Those of Base come before them.
func (b *ShardWriter) Finish(info store.Info) (*store.Manifest, error) {
	if b.manifest.Records() == 0 {
		return nil, errors.New("no records: an empty dataset cannot be mapped, so none is written")
	}
	for i := range b.sections {
		if b.sections[i].open == 0 {
			continue
		}
		if err := b.sections[i].closeShard(); err != nil {
			return nil, err
		}
	}
	m := b.manifest.Manifest(info)
	renames := b.arrange(m)
	if base := b.opts.Base; base != nil {
		follow(m, base)
	}
	if b.journal != nil {
		if err := b.journal.commit(entry{Renames: renames}); err != nil {
			return nil, err
		}
	}
	for _, r := range renames {
		if r.From == r.To {
			continue
		}
		if err := b.stage.folder.Rename(r.From, r.To); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// arrange enters the shards of all sections, one after the other, and where their records
// come to be. It returns which file gets which name.
func (b *ShardWriter) arrange(m *store.Manifest) (renames []rename) {
	next, shards := int64(0), 0
	if base := b.opts.Base; base != nil {
		next, shards = base.Records, len(base.Shards)
		m.Shards = append(m.Shards, base.Shards...)
	}
	for i := range b.sections {
		s := &b.sections[i]
		first := next
		for _, shard := range s.shards {
			shard, moved := s.renumber(shard, next, shards)
			renames = append(renames, moved...)
			m.Shards = append(m.Shards, shard)
			next += shard.Count
			shards++
		}
		if len(b.opts.Splits) > 0 {
			addSplit(m, b.opts.Splits[i], b.opts.Base, first, next)
		}
	}
	return renames
}

// renumber returns a shard with the number and first record that it has in the dataset.
func (s *section) renumber(shard store.Shard, first int64, number int) (store.Shard, []rename) {
	out := store.Shard{First: first, Count: shard.Count}
	var moved []rename
	for k := range s.columns {
		old := shard.Files[2*k : 2*k+2]
		payload, sums := s.columns[k].Files(number, 0)
		for j, name := range []string{payload.Name, sums.Name} {
			f := old[j]
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

// follow makes m the next generation of base.
func follow(m, base *store.Manifest) {
	m.Generation = base.Generation + 1
	if m.Recipe == nil {
		m.Recipe = base.Recipe
	}
	if m.Source == nil {
		m.Source = base.Source
	}
	m.Skipped = append(append([]store.Skipped(nil), base.Skipped...), m.Skipped...)
}

// Close lets go of the build's files, which stay in the stage.
func (b *ShardWriter) Close() error {
	for i := range b.sections {
		b.sections[i].abandon()
	}
	if b.journal == nil {
		return nil
	}
	j := b.journal
	b.journal = nil
	return j.close()
}

// undo gives the files of a commit that did not come to its end their old names back. Those
// of an append may be in the dataset's folder already.
func (b *ShardWriter) undo(renames []rename) error {
	folders := []*os.Root{b.stage.folder}
	if b.opts.Base != nil {
		dest, err := private.Real(b.stage.parent, filepath.Base(b.stage.dest))
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
			if _, err := b.stage.folder.Lstat(r.From); err == nil {
				break
			}
			if err := private.Move(folder, r.To, b.stage.folder, r.From); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
