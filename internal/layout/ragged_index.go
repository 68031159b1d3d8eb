package layout

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// RaggedIndex says where the records of a ragged field are in the two columns of the field.
type RaggedIndex struct{ Extents []RaggedExtent }

// RaggedExtent is where consecutive records of a ragged field are: extent number k of its offsets, and
// of its values.
type RaggedExtent struct {
	First, Count int64   // records
	Offset       int64   // number that the first record's offset has in the column of offsets
	Row, Rows    int64   // number that the first row has in the column of values, and how many there are
	Offsets      *Extent // where its offsets are
}

// NewRaggedIndex returns the index of the ragged field that has these columns.
func NewRaggedIndex(offsets, values *Column) RaggedIndex {
	x := RaggedIndex{make([]RaggedExtent, len(offsets.Extents))}
	first := int64(0)
	for k := range offsets.Extents {
		e, v := &offsets.Extents[k], &values.Extents[k]
		x.Extents[k] = RaggedExtent{First: first, Count: e.Count - 1, Offset: e.First, Row: v.First, Rows: v.Count,
			Offsets: e}
		first += e.Count - 1
	}
	return x
}

// Find returns the number of the extent that holds a record, and -1 for a record before the first.
func (x *RaggedIndex) Find(record int64) int {
	return sort.Search(len(x.Extents), func(k int) bool { return x.Extents[k].First > record }) - 1
}

// FindRow returns the number of the extent that holds a row of the values, which must exist.
func (x *RaggedIndex) FindRow(row int64) int {
	return max(0, sort.Search(len(x.Extents), func(k int) bool { return x.Extents[k].Row > row })-1)
}

// Walk goes through consecutive offsets of an extent and checks them: they begin anywhere from 0 on, never fall, and
// end at the number of rows. No other code turns offsets into rows, so a corrupt or hostile offset never leads out of
// the extent.
type Walk struct {
	e        *RaggedExtent
	left     int64 // records that were not taken
	base, at int64
	end      int64 // the last offset
}

// Walk begins at a record, counted from the extent's first. base is the first offset of the extent, and at the offset
// of the record.
func (e *RaggedExtent) Walk(record, base, at int64) (Walk, error) {
	w := Walk{e, e.Count - record, base, at, base + e.Rows}
	if base < 0 || w.end < base || at < base || at > w.end {
		return w, w.wrong(at)
	}
	return w, nil
}

// Row returns where the next record's rows begin, counted from the extent's first row.
func (w *Walk) Row() int64 { return w.at - w.base }

// Next takes the offset where the next record ends, and returns how many rows the record has.
func (w *Walk) Next(end int64) (rows int64, err error) {
	if end < w.at || end > w.end || w.left == 1 && end != w.end {
		return 0, w.wrong(end)
	}
	rows, w.at = end-w.at, end
	w.left--
	return rows, nil
}

func (w *Walk) wrong(offset int64) error {
	return fmt.Errorf("%s: record %d: its offset %d is impossible, the values have %d rows: %w",
		w.e.Offsets.Path, w.e.First+w.e.Count-max(1, w.left), offset, w.e.Rows, ErrCorrupt)
}

// readRows reads from the file of the offsets which rows of the extent records [a, b), counted from its
// first, have.
func (e *RaggedExtent) readRows(a, b int64) (from, to int64, err error) {
	f, err := e.Offsets.Open()
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var at [3]int64
	for i, record := range []int64{0, a, b} {
		var buf [8]byte
		if _, err := f.ReadAt(buf[:], e.Offsets.Offset+8*record); err != nil {
			return 0, 0, err
		}
		at[i] = int64(binary.LittleEndian.Uint64(buf[:]))
	}
	w, err := e.Walk(a, at[0], at[1])
	if err == nil {
		_, err = e.Walk(b, at[0], at[2])
	}
	if err == nil && at[2] < at[1] {
		err = w.wrong(at[2])
	}
	return w.Row(), at[2] - at[0], err
}
