package write

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// syncsAtOnce is how many files of a shard wait for the disk at the same time.
const syncsAtOnce = 16

// maxBytes limits the bytes of a column that a journal claims. No column has as many, and products of sizes below it do
// not overflow.
const maxBytes = 1 << 62

// section is a sequence of shards that is written on its own: all records of a dataset, or one of its splits. Splits
// grow at the same time, and the final numbers of their shards are known only at the end, so file names begin with
// prefix until the dataset is finished.
type section struct {
	schema  store.Schema
	folder  stagedFiles
	size    shardSize
	cuts    []int64 // records of each shard; nil where size decides
	prefix  string
	number  int // number of the first shard, for names
	columns []layout.Column
	arrays  []arrayFile   // by column
	shards  []store.Shard // finished shards; First counts from the section's own start
	records int64         // in finished shards
	open    int64         // records in the open shard
}

func newSection(schema store.Schema, folder stagedFiles, size shardSize, prefix string, number int) section {
	s := section{schema: schema, folder: folder, size: size, prefix: prefix, number: number,
		columns: layout.Columns(schema.Specs())}
	for _, c := range s.columns {
		s.arrays = append(s.arrays, newArrayFile(c.Spec, folder))
	}
	return s
}

// raggedFull reports whether a ragged field has as many bytes as a shard should have.
func (s *section) raggedFull() bool {
	for k, c := range s.columns {
		if c.Part != layout.Whole && s.arrays[k].rows*int64(c.Spec.RecordBytes()) >= s.size.bytes {
			return true
		}
	}
	return false
}

// path returns where a file of this section is in the stage.
func (s *section) path(name string) string { return s.folder.Path(s.prefix + name) }

// files returns the manifest entries of a column's two files in a shard of this section, without CRCs.
func (s *section) files(k int, shard int, rows int64) (payload, sums store.File) {
	c := &s.columns[k]
	return c.Files(s.number+shard, rows)
}

// openShard creates the files of all columns of the next shard. A dataset of many fields can exceed the process's limit
// of open files, for which the error has a command. The offsets of ragged fields begin with 0, so that record i always
// has offsets i and i+1.
func (s *section) openShard() error {
	for k := range s.arrays {
		payload, _ := s.files(k, len(s.shards), 0)
		if err := s.arrays[k].create(s.prefix + payload.Name); errors.Is(err, syscall.EMFILE) {
			return fmt.Errorf("%w: a writer has a file of each field open; run ulimit -n %d", err, len(s.arrays)+100)
		} else if err != nil {
			return err
		}
		if s.columns[k].Part == layout.Offsets {
			if err := s.arrays[k].appendOffset(0); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeShard writes the headers of the shard's files, which contain the number of rows, and enters the shard.
func (s *section) closeShard() error {
	shard := store.Shard{First: s.records, Count: s.open, Files: make([]store.File, 2*len(s.arrays))}
	if err := s.each(func(k int) error { return s.closeArray(k, shard.Files[2*k:2*k+2]) }); err != nil {
		return err
	}
	s.shards = append(s.shards, shard)
	s.records += s.open
	s.open = 0
	return nil
}

// closeArray finishes the files of a column in the open shard, and sets their entries.
func (s *section) closeArray(k int, entries []store.File) error {
	payload, sums := s.files(k, len(s.shards), s.arrays[k].rows)
	crc, blocks, err := s.arrays[k].close()
	if err != nil {
		return err
	}
	payload.CRC32C = layout.HexCRC(crc)
	crc, err = writeSums(s.folder, s.prefix+sums.Name, blocks)
	sums.CRC32C = layout.HexCRC(crc)
	entries[0], entries[1] = payload, sums
	return err
}

// sync waits until all records of the open shard are on disk. Finished shards are there already.
func (s *section) sync() error {
	if s.open == 0 {
		return nil
	}
	return s.each(func(k int) error { return s.arrays[k].sync() })
}

// each calls f for every column, for several columns at the same time: closing a shard of 1,000 columns waits for the
// disk 2,000 times.
func (s *section) each(f func(k int) error) error {
	var g errgroup.Group
	g.SetLimit(syncsAtOnce)
	for k := range s.arrays {
		g.Go(func() error { return f(k) })
	}
	return g.Wait()
}

func (s *section) abandon() {
	for k := range s.arrays {
		s.arrays[k].abandon()
	}
}

// sectionState is the state of a section in a checkpoint.
type sectionState struct {
	Shards int          `json:"shards"` // finished ones
	Open   int64        `json:"open"`   // records in the open one
	Arrays []arrayState `json:"arrays,omitempty"`
}

// arrayState is a column of the open shard.
type arrayState struct {
	Rows   int64  `json:"rows"`
	CRC32C uint32 `json:"crc32c"`
}

// state returns the state from which a resumed build continues the section. Finished shards are final. For the open
// shard, the state has the number of rows of each file and the checksum of the rows, with which resume compares the
// rows that it finds.
func (s *section) state() sectionState {
	state := sectionState{Shards: len(s.shards), Open: s.open}
	for k := range s.arrays {
		if s.open > 0 {
			state.Arrays = append(state.Arrays, arrayState{s.arrays[k].rows, s.arrays[k].sums.all()})
		}
	}
	return state
}

// restore continues the section after a checkpoint. shards are the finished shards that the journal lists for the
// section. restore adds the names of all files of the section to keep. The journal may be damaged or of another build,
// so all counts are checked before any file is opened.
func (s *section) restore(state sectionState, shards []store.Shard, keep map[string]bool) error {
	if state.Shards < 0 || state.Shards > len(shards) || state.Open < 0 || state.Open > 0 &&
		len(state.Arrays) != len(s.arrays) {
		return fmt.Errorf("it knows %d shards of %d: %w", len(shards), state.Shards, store.ErrCorrupt)
	}
	for _, shard := range shards[:state.Shards] {
		if err := s.restoreShard(shard, keep); err != nil {
			return err
		}
	}
	s.open = state.Open
	for k := range s.arrays {
		if s.open == 0 {
			break
		}
		payload, _ := s.files(k, len(s.shards), 0)
		keep[s.prefix+payload.Name] = true
		a := state.Arrays[k]
		if a.Rows < 0 || a.Rows > maxBytes/int64(s.columns[k].Spec.RecordBytes()) {
			return fmt.Errorf("column %s: %d rows: %w", s.columns[k].Name, a.Rows, store.ErrCorrupt)
		}
		if err := s.arrays[k].resume(s.prefix+payload.Name, a.Rows, a.CRC32C); err != nil {
			return err
		}
	}
	return nil
}

// restoreShard takes over a finished shard. Its files must exist with the sizes that follow from the journal; their
// bytes were on disk before the journal listed the shard.
func (s *section) restoreShard(shard store.Shard, keep map[string]bool) error {
	if shard.First != s.records || shard.Count < 1 || shard.Count > layout.MaxRecords-s.records ||
		len(shard.Files) != 2*len(s.columns) {
		return fmt.Errorf("shard %d has records [%d, +%d) in %d files: %w", len(s.shards), shard.First, shard.Count,
			len(shard.Files), store.ErrCorrupt)
	}
	if err := layout.CheckFiles(shard, s.columns, s.number+len(s.shards)); err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrCorrupt)
	}
	for i, f := range shard.Files {
		info, err := s.folder.root.Lstat(s.prefix + f.Name)
		if err != nil {
			return err
		}
		want := f.Bytes
		if frame := s.arrays[i/2].frame; frame != nil && i%2 == 0 {
			rows := f.Bytes - layout.HeaderBytes
			want = frame.Head + rows + frame.padding(rows)
		}
		if info.Size() != want {
			return fmt.Errorf("%s: %d bytes, not %d: %w", s.path(f.Name), info.Size(), want, store.ErrCorrupt)
		}
		keep[s.prefix+f.Name] = true
	}
	s.shards = append(s.shards, shard)
	s.records += shard.Count
	return nil
}

// shardSize says when a shard is full: at a multiple of step records, when it has the given number
// of records or a ragged field has the given number of bytes.
type shardSize struct {
	records, step, bytes int64
}

// newShardSize finds sizes at which a full shard of every fixed field is whole pages, so that the shards of a field can
// be mapped side by side, as one array.
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

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int64) int64 { return a / gcd(a, b) * b }
