package hdf5

import (
	"encoding/binary"
	"io"
	"os"

	"github.com/penstock/penstock/store"
)

// joined returns the columns that parts of a dataset, one after the other, make. Offsets
// have one row less for each extent but the first, as one's end is the next one's start.
func joined(parts [][]store.Column) []store.Column {
	out := make([]store.Column, len(parts[0]))
	for k := range out {
		c := parts[0][k]
		out[k] = store.Column{Field: c.Field, Part: c.Part, Name: c.Name, Spec: c.Spec}
		for _, p := range parts {
			out[k].Rows += p[k].Rows
			if c.Part == store.Offsets {
				out[k].Rows -= int64(len(p[k].Extents))
			}
		}
		if c.Part == store.Offsets {
			out[k].Rows++
		}
	}
	return out
}

// collect copies column k of all parts.
func (a *array) collect(parts [][]store.Column, k int) error {
	c := collecting{to: a, buf: make([]byte, writeBuffer-writeBuffer%a.meta.Spec.RecordBytes())}
	if len(c.buf) == 0 {
		c.buf = make([]byte, a.meta.Spec.RecordBytes())
	}
	for _, p := range parts {
		var index store.RaggedIndex
		if a.meta.Part == store.Offsets {
			index = store.NewRaggedIndex(&p[k], &p[k-1])
		}
		for i, e := range p[k].Extents {
			var err error
			if a.meta.Part == store.Offsets {
				err = c.offsets(e, &index.Extents[i])
			} else {
				err = c.rows(e, nil)
			}
			if err != nil {
				return pathless(err)
			}
		}
	}
	return nil
}

// collecting is the copy of one column.
type collecting struct {
	to      *array
	buf     []byte
	base    int64 // rows of the values so far
	started bool  // the first offset is written
}

// rows copies an extent, changed in pieces by change if that is not nil.
func (c *collecting) rows(e store.Extent, change func(piece []byte) ([]byte, error)) error {
	f, err := os.Open(e.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	left := e.Count * int64(c.to.meta.Spec.RecordBytes())
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
		if err := c.to.append(piece, store.CRC32C(piece)); err != nil {
			return err
		}
	}
	return nil
}

// offsets copies an extent of offsets, to count from the first row of the column.
func (c *collecting) offsets(e store.Extent, x *store.RaggedExtent) error {
	first := true
	var w store.Walk
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
			piece = piece[8:] // it is the end of the extent before
		}
		first, c.started = false, true
		return piece, nil
	})
	c.base += x.Rows
	return err
}
