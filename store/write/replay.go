package write

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// replay computes statistics and identity of base followed by the records in the stage. It is needed if another writer
// has changed the dataset since this append began: the hashes and sums of this append continue from an older
// generation. schema describes the records of base and of the stage.
func (a *appending) replay(base *store.Manifest, schema store.Schema) (*ManifestBuilder, error) {
	b := NewManifestBuilder(schema, a.splits...)
	if err := b.Restore(base.BuilderState); err != nil {
		return nil, err
	}
	number := len(a.base.Shards)
	for i := range a.shards.sections {
		split := ""
		if len(a.splits) > 0 {
			split = a.splits[i]
		}
		for _, s := range a.shards.sections[i].shards {
			if err := a.replayShard(b, s.Count, number, split); err != nil {
				return nil, err
			}
			number++
		}
	}
	return b, nil
}

// replayShard adds the records of a shard of the stage to b.
func (a *appending) replayShard(b *ManifestBuilder, records int64, number int, split string) error {
	r := store.NewRecord(b.schema)
	r.Split = split
	var columns []*columnReader
	defer func() {
		for _, c := range columns {
			_ = c.file.Close()
		}
	}()
	for _, c := range layout.Columns(b.fields) {
		payload, _ := c.Files(number, 0)
		f, err := a.stage.Folder.root.Open(payload.Name)
		if err != nil {
			return err
		}
		if _, err := f.Seek(layout.HeaderBytes, io.SeekStart); err != nil {
			return err
		}
		columns = append(columns, &columnReader{Column: c, file: f, buffered: bufio.NewReaderSize(f, 1<<18)})
	}
	rows := make([]int64, len(b.fields)) // of the ragged values of a record
	sums := make([]uint32, len(b.fields))
	for k := range records {
		for _, c := range columns {
			if c.Part == layout.Offsets {
				if err := c.readRows(&rows[c.Field], k == 0); err != nil {
					return err
				}
			}
		}
		for _, c := range columns {
			if c.Part == layout.Offsets {
				continue
			}
			n := c.Spec.RecordBytes()
			if c.Part == layout.Values {
				n *= int(rows[c.Field])
			}
			value := slices.Grow(r.Values[c.Field][:0], n)[:n]
			if _, err := io.ReadFull(c.buffered, value); err != nil {
				return err
			}
			r.Values[c.Field] = value
		}
		if err := b.Add(r, sums); err != nil {
			return err
		}
	}
	return nil
}

// columnReader reads the values of a column of the stage in their order.
type columnReader struct {
	layout.Column
	file     *os.File
	buffered *bufio.Reader
	end      int64 // in a column of offsets, where the last record ends
}

// readRows reads how many rows the next record has from a column of offsets. The column begins with a 0, which is
// skipped before the first record, and then has the offset at which the rows of each record end.
func (c *columnReader) readRows(rows *int64, first bool) error {
	var word [8]byte
	if first {
		if _, err := io.ReadFull(c.buffered, word[:]); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(c.buffered, word[:])
	end := int64(binary.LittleEndian.Uint64(word[:]))
	*rows, c.end = end-c.end, end
	return err
}
