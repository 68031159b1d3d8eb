package write

import (
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/store"
)

// blockContainer is a Container that takes many records by one call.
type blockContainer interface {
	Container

	// AppendBlock adds the records of b, as many calls of Append would.
	AppendBlock(b *store.Block) error
}

// AppendBlock implements store.Writer.
func (w *writer) AppendBlock(b *store.Block) error {
	if w.err != nil {
		return w.err
	}
	n := w.container.Records()
	if c, ok := w.container.(blockContainer); ok {
		if err := c.AppendBlock(b); err != nil {
			w.err = fmt.Errorf("store: write %q: record %d: %w", w.stage.Dest(), n, err)
		}
		return w.err
	}
	r := store.NewRecord(b.Schema())
	for i := range b.N {
		b.Record(i, r)
		if err := w.Append(r); err != nil {
			return err
		}
	}
	return nil
}

// AddBlock enters records as as many calls of Add do, except that after an error none of them was entered.
func (l *ManifestBuilder) AddBlock(b *store.Block) error {
	if len(b.Values) != len(l.schema.Fields) {
		panic("store: block was not made by NewBlock for this schema")
	}
	b.Settle()
	split, err := l.split(b.Split)
	if err != nil {
		return err
	}
	for i, f := range l.schema.Fields {
		if err := checkLabels(f, b.Values[i]); err != nil {
			return err
		}
	}
	l.metadata[split].addBlock(l.schema, b)
	return nil
}

func (k *splitMetadata) addBlock(s store.Schema, b *store.Block) {
	for i, f := range s.Fields {
		k.many = k.many[:0]
		for _, sum := range b.Sums(i) {
			k.many = binary.LittleEndian.AppendUint32(k.many, sum)
		}
		k.ids[i].Write(k.many)
		b.MergeStatistics(k.stats[i], i)
		if isLabel(f) {
			for v := b.Values[i]; len(v) > 0; v = v[8:] {
				k.labels[i][binary.LittleEndian.Uint64(v)]++
			}
		}
	}
	k.count += int64(b.N)
}

// AppendBlock adds the next records, of a schema without ragged fields.
func (b *ShardWriter) AppendBlock(r *store.Block) error {
	if err := b.manifest.AddBlock(r); err != nil {
		return err
	}
	i, err := b.manifest.split(r.Split)
	if err != nil {
		return err
	}
	s := &b.sections[i]
	for done := 0; done < r.N; {
		n, full, err := s.appendRows(r, done)
		if err == nil && full && b.journal != nil {
			err = b.journal.write(entry{Shard: &shardEntry{i, s.shards[len(s.shards)-1]}})
		}
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

// appendRows adds the records of a block from the first on, up to the end of the open shard. It returns how
// many those are, and whether the shard is full.
func (s *section) appendRows(b *store.Block, first int) (n int, full bool, err error) {
	if s.open == 0 {
		if err := s.openShard(); err != nil {
			return 0, false, err
		}
	}
	n = int(min(int64(b.N-first), max(1, s.size.records-s.open)))
	for k := range s.arrays {
		field, size := s.columns[k].Field, s.columns[k].Spec.RecordBytes()
		if err := s.arrays[k].appendRows(b.Values[field][first*size:(first+n)*size], b.Sums(field)[first:]); err != nil {
			return 0, false, err
		}
	}
	s.open += int64(n)
	if s.open%s.size.step != 0 || s.open < s.size.records {
		return n, false, nil
	}
	return n, true, s.closeShard()
}

// appendRows adds rows, each of which has its checksum in sums.
func (a *arrayFile) appendRows(b []byte, sums []uint32) error {
	if size := a.spec.RecordBytes(); a.sums.size == size { // a block of checksums is a row
		a.sums.Done = append(a.sums.Done, sums[:len(b)/size]...)
	} else {
		a.sums.write(b)
	}
	return a.gather(b)
}
