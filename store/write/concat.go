package write

import (
	"encoding/binary"
	"io"

	"github.com/penstock/penstock/internal/layout"
)

// ConcatColumns returns the columns of a dataset that consists of parts, one part after the other. A column of offsets
// has one row less for each extent but the first: the end of an extent is the start of the next extent.
func ConcatColumns(parts [][]layout.Column) []layout.Column {
	out := make([]layout.Column, len(parts[0]))
	for k := range out {
		c := parts[0][k]
		out[k] = layout.Column{Field: c.Field, Part: c.Part, Name: c.Name, Spec: c.Spec}
		for _, p := range parts {
			out[k].Rows += p[k].Rows
			if c.Part == layout.Offsets {
				out[k].Rows -= int64(len(p[k].Extents))
			}
		}
		if c.Part == layout.Offsets {
			out[k].Rows++
		}
	}
	return out
}

// collectBuffer is about how many bytes ConcatRows copies at a time.
const collectBuffer = 1 << 20

// ConcatRows passes the rows of column k of all parts to a function, one part after the other, whole rows at a time.
// Offsets are changed to count from the first row of the joined column.
func ConcatRows(parts [][]layout.Column, k int, to func(rows []byte) error) error {
	size := parts[0][k].Spec.RecordBytes()
	c := collecting{size: int64(size), to: to, buf: make([]byte, max(size, collectBuffer-collectBuffer%size))}
	for _, p := range parts {
		var index layout.RaggedIndex
		if p[k].Part == layout.Offsets {
			index = layout.NewRaggedIndex(&p[k], &p[k-1])
		}
		for i, e := range p[k].Extents {
			var err error
			if p[k].Part == layout.Offsets {
				err = c.offsets(e, &index.Extents[i])
			} else {
				err = c.rows(e, nil)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// collecting is the copy of one column by ConcatRows.
type collecting struct {
	size    int64 // of a row
	to      func(rows []byte) error
	buf     []byte
	base    int64 // rows of the values so far
	started bool  // the first offset is written
}

// rows copies an extent. If change is not nil, it changes each piece before the piece is passed on.
func (c *collecting) rows(e layout.Extent, change func(piece []byte) ([]byte, error)) error {
	f, err := e.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	left := e.Count * c.size
	for r := io.NewSectionReader(f, e.Offset, left); left > 0; {
		piece := c.buf[:min(left, int64(len(c.buf)))]
		if _, err := io.ReadFull(r, piece); err != nil {
			return err
		}
		left -= int64(len(piece))
		if change != nil {
			if piece, err = change(piece); err != nil {
				return err
			}
		}
		if err := c.to(piece); err != nil {
			return err
		}
	}
	return nil
}

// offsets copies an extent of offsets, changed to count from the first row of the joined column. Offsets come from
// files that another program may have damaged, so a Walk checks each offset against the offset before.
func (c *collecting) offsets(e layout.Extent, x *layout.RaggedExtent) error {
	first := true
	var w layout.Walk
	err := c.rows(e, func(piece []byte) (_ []byte, err error) {
		for b := piece; len(b) > 0; b = b[8:] {
			offset := int64(binary.LittleEndian.Uint64(b))
			if first && len(b) == len(piece) {
				w, err = x.Walk(0, offset, offset)
			} else {
				_, err = w.Next(offset)
			}
			if err != nil {
				return nil, err
			}
			binary.LittleEndian.PutUint64(b, uint64(c.base+w.Row()))
		}
		if first && c.started {
			piece = piece[8:] // the first offset repeats the end of the previous extent
		}
		first, c.started = false, true
		return piece, nil
	})
	c.base += x.Rows
	return err
}
