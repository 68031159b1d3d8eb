package write

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// This file is the way of a record from a store.Writer to the disk, in the order of the calls: the writer counts
// records and keeps the first error, the ShardWriter enters the record into the manifest, its section opens and closes
// shards, and an array file has the bytes of one column.

// Append implements store.Writer.
func (w *writer) Append(r *store.Record) error {
	return w.append(func() error { return w.records.Append(r) })
}

// AppendBlock appends the records of b to w, as that many calls of Append would. The caller may reuse the Block when
// AppendBlock returns.
func AppendBlock(w store.Writer, b *digest.Block) error {
	if w, ok := w.(blockWriter); ok {
		return w.AppendBlock(b)
	}
	return appendEach(w, b)
}

// blockWriter is a store.Writer that takes many records by one call.
type blockWriter interface{ AppendBlock(b *digest.Block) error }

// AppendBlock implements blockWriter.
func (w *writer) AppendBlock(b *digest.Block) error {
	if records, ok := w.records.(blockRecords); ok {
		return w.append(func() error { return records.AppendBlock(b) })
	}
	return appendEach(w, b)
}

// appendEach appends the records of a block one by one, for a Writer that does not take blocks.
func appendEach(w store.Writer, b *digest.Block) error {
	var schema store.Schema
	for _, f := range b.Fields() {
		schema.Fields = append(schema.Fields, store.Field{Spec: f})
	}
	r := store.NewRecord(schema)
	r.Split = b.Split
	for i := range b.N {
		b.Copy(i, r.Values)
		if err := w.Append(r); err != nil {
			return err
		}
	}
	return nil
}

// append calls add, and makes its error the error of all later calls: a record that was written in part leaves columns
// of different lengths, which only an earlier checkpoint can repair.
func (w *writer) append(add func() error) error {
	if w.err != nil {
		return w.err
	}
	n := w.records.Records()
	if err := add(); err != nil {
		w.err = fmt.Errorf("store: write %q: record %d: %w", w.stage.Dest(), n, err)
	}
	return w.err
}

// Append adds the next record.
func (w *ShardWriter) Append(r *store.Record) error {
	if err := w.manifest.Add(r, w.sums); err != nil {
		return err
	}
	i, err := w.manifest.split(r.Split)
	if err != nil {
		return err
	}
	if w.opts.Cuts != nil {
		i = 0
	}
	full, err := w.sections[i].append(r, w.sums)
	if err == nil && full {
		err = w.enterShard(i)
	}
	return w.opts.reworded(err)
}

// AppendBlock adds the next records.
func (w *ShardWriter) AppendBlock(r *digest.Block) error {
	if err := w.manifest.AddBlock(r); err != nil {
		return err
	}
	i, err := w.manifest.split(r.Split)
	if err != nil {
		return err
	}
	if w.opts.Cuts != nil {
		i = 0
	}
	s := &w.sections[i]
	for done := 0; done < r.N; {
		n, full, err := s.appendRows(r, done)
		if err == nil && full {
			err = w.enterShard(i)
		}
		if err != nil {
			return w.opts.reworded(err)
		}
		done += n
	}
	return nil
}

// enterShard enters the last shard of a section, which is full, into the journal. The line counts once a checkpoint
// follows.
func (w *ShardWriter) enterShard(section int) error {
	if w.journal == nil {
		return nil
	}
	shards := w.sections[section].shards
	return w.journal.write(entry{Shard: &shardEntry{section, shards[len(shards)-1]}})
}

// append adds a record whose values have the checksums sums. It reports whether the record was the last record of a
// shard.
func (s *section) append(r *store.Record, sums []uint32) (full bool, err error) {
	if s.open == 0 {
		if err := s.openShard(); err != nil {
			return false, err
		}
	}
	for k := range s.arrays {
		if err := s.add(k, r, sums); err != nil {
			return false, err
		}
	}
	s.open++
	if !s.full() {
		return false, nil
	}
	return true, s.closeShard()
}

// full reports whether the open shard has all its records. Without cuts, a shard ends at a multiple of step records
// only, so that the files of fixed fields are whole pages.
func (s *section) full() bool {
	if s.cuts != nil {
		return s.open == s.limit()
	}
	return s.open%s.size.step == 0 && (s.open >= s.size.records || s.raggedFull())
}

// limit returns how many records the open shard gets, if no ragged field ends it earlier.
func (s *section) limit() int64 {
	if s.cuts != nil {
		return s.cuts[len(s.shards)]
	}
	return s.size.records
}

// add appends what a record has for column k. The column of offsets comes after the column of its values, whose number
// of rows is where the record ends.
func (s *section) add(k int, r *store.Record, sums []uint32) error {
	c := &s.columns[k]
	if c.Part != layout.Offsets {
		return s.arrays[k].append(r.Values[c.Field], sums[c.Field])
	}
	return s.arrays[k].appendOffset(s.arrays[k-1].rows)
}

// appendRows adds the records of a block from first on, up to the end of the open shard. It returns how many records it
// has added, and whether the shard is full.
func (s *section) appendRows(b *digest.Block, first int) (n int, full bool, err error) {
	if s.open == 0 {
		if err := s.openShard(); err != nil {
			return 0, false, err
		}
	}
	n = s.room(b, first)
	for k := range s.arrays {
		a, field := &s.arrays[k], s.columns[k].Field
		values := b.Slice(field, first, first+n)
		switch s.columns[k].Part {
		case layout.Offsets:
			err = a.appendOffsets(b, field, first, n, s.arrays[k-1].rows)
		case layout.Whole:
			err = a.appendRows(values, b.CRC32Cs(field)[first:])
		default:
			a.sums.write(values)
			err = a.gather(values)
		}
		if err != nil {
			return 0, false, err
		}
	}
	s.open += int64(n)
	if !s.full() {
		return n, false, nil
	}
	return n, true, s.closeShard()
}

// room returns how many records of a block, from first on, the open shard takes. A ragged field can fill the shard
// before the limit of records. The number of its rows only grows with records, so the record that fills the shard is
// found by a binary search, and then rounded up to a multiple of step.
func (s *section) room(b *digest.Block, first int) int {
	n := int(min(int64(b.N-first), max(1, s.limit()-s.open)))
	if s.cuts != nil {
		return n
	}
	for k := range s.columns {
		c := &s.columns[k]
		if c.Part == layout.Whole {
			continue
		}
		least := sort.Search(n, func(i int) bool { // one less than the records that make the shard full
			rows := int64(i + 1)
			if c.Part != layout.Offsets {
				rows = int64(b.Rows(c.Field, first, first+i+1))
			}
			return (s.arrays[k].rows+rows)*int64(c.Spec.RecordBytes()) >= s.size.bytes
		}) + 1
		if over := int((s.open + int64(least)) % s.size.step); over > 0 {
			least += int(s.size.step) - over
		}
		n = min(n, least)
	}
	return n
}

// appendOffsets adds the offsets at which the values of n records end. The column of values already has the rows of
// these records, as its last rows.
func (a *arrayFile) appendOffsets(b *digest.Block, field, first, n int, rows int64) error {
	at := rows - int64(b.Rows(field, first, first+n))
	a.words = slices.Grow(a.words[:0], 8*n)
	for i := range n {
		at += int64(b.Rows(field, first+i, first+i+1))
		a.words = binary.LittleEndian.AppendUint64(a.words, uint64(at))
	}
	a.sums.write(a.words)
	return a.gather(a.words)
}

// appendRows adds rows, each of which has its checksum in sums. Where a block of checksums is exactly one row, these
// are the block's checksums, and the bytes are not read again.
func (a *arrayFile) appendRows(b []byte, sums []uint32) error {
	if size := a.spec.RecordBytes(); a.sums.size == size { // each block of checksums is one row
		a.sums.Done = append(a.sums.Done, sums[:len(b)/size]...)
	} else {
		a.sums.write(b)
	}
	return a.gather(b)
}
