package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// columnScan reads one column in full, to find properties that need all values: whether lists have one length, or
// which class names there are.
type columnScan struct {
	column  *leafColumn
	lists   *listLengths    // nil unless lengths are wanted
	classes map[string]bool // nil unless class names are wanted
}

// newColumnScan returns the scan that a column needs; nil if it needs no scan.
func newColumnScan(c *leafColumn) *columnScan {
	if c.parts != nil {
		return nil
	}
	rank := c.leaf.MaxRepetitionLevel
	switch {
	case rank == 0 && c.wordLabel():
		return &columnScan{column: c, classes: make(map[string]bool)}
	case (rank == 1 || rank == 2) && c.DType != tensor.Invalid && c.selection.Type == "":
		return &columnScan{column: c, lists: newListLengths(rank, c.leaf.MaxDefinitionLevel)}
	}
	return nil
}

// done reports whether further values cannot change the result.
func (s *columnScan) done() bool { return s.lists != nil && s.lists.differ }

// file scans the column in one file.
func (s *columnScan) file(ctx context.Context, p *part) error {
	for _, g := range p.RowGroups() {
		if s.done() {
			return nil
		}
		if err := s.chunk(ctx, g.ColumnChunks()[p.leaves[s.column.leaf.ColumnIndex]]); err != nil {
			return fmt.Errorf("column %s: %w", s.column.name, err)
		}
	}
	return nil
}

// chunk scans the pages of the column in one row group, until the scan is done.
func (s *columnScan) chunk(ctx context.Context, chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	for {
		page, err := pages.ReadPage()
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = s.page(page)
			parquet.Release(page)
		}
		// Pages are closed also when the scan stops early.
		if err != nil || s.done() {
			if err == io.EOF {
				err = nil
			}
			return errors.Join(err, pages.Close())
		}
	}
}

// page scans one page. The lengths of lists follow from the levels, so their values are not decoded.
func (s *columnScan) page(p parquet.Page) error {
	if s.lists != nil {
		s.lists.add(p.RepetitionLevels(), p.DefinitionLevels(), p.NumValues())
		return nil
	}
	values, r := make([]parquet.Value, 256), p.Values()
	for {
		n, err := r.ReadValues(values)
		for _, v := range values[:n] {
			if !v.IsNull() && len(s.classes) <= column.MaxClasses {
				s.classes[string(v.ByteArray())] = true
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// finish stores the result in the column.
func (s *columnScan) finish() error {
	if s.lists != nil {
		s.column.shape = s.lists.shape()
		if of := s.column.extension.Shape; of != nil {
			s.column.odd = !slices.Equal(s.column.shape, []int{tensor.Shape(of).Elems()})
			s.column.shape = of
		}
		return nil
	}
	if len(s.classes) > column.MaxClasses {
		return fmt.Errorf("column %s: more than %d classes; words that are not classes are of type text", s.column.name,
			column.MaxClasses)
	}
	s.column.classes = slices.Sorted(maps.Keys(s.classes))
	s.column.words = source.ClassNumbers(s.column.classes)
	return nil
}

// listLengths finds the shape that all values of a list column share, from their repetition and definition levels.
type listLengths struct {
	rank, most    int    // highest repetition level, and highest definition level
	lengths, want [2]int // lengths of the current inner and outer list, and of the first ones
	begun, differ bool   // there was a value; there are different lengths
}

func newListLengths(rank, most int) *listLengths {
	return &listLengths{rank: rank, most: most}
}

// add adds the levels of a page.
func (l *listLengths) add(repetition, definition []byte, values int64) {
	// Without levels, lengths are unknown, and the column is taken for ragged.
	if int64(len(repetition)) != values || int64(len(definition)) != values {
		l.differ = true // levels that are not there say nothing
	}
	for i := 0; i < len(repetition) && !l.differ; i++ {
		l.level(int(repetition[i]), int(definition[i]))
	}
}

// level adds a value with repetition level r and definition level d. r is 0 at the beginning of a row, and 1 at the
// beginning of an inner list.
func (l *listLengths) level(r, d int) {
	if d < l.most { // a null, or an empty list
		l.differ = true
		return
	}
	if l.begun && r < l.rank {
		l.close(r)
	}
	l.begun = true
	l.lengths[0]++
}

// close ends the current inner list, and with r = 0 also the row, and compares their lengths.
func (l *listLengths) close(r int) {
	for k := 0; k < l.rank-r; k++ {
		if l.want[k] == 0 {
			l.want[k] = l.lengths[k]
		}
		l.differ = l.differ || l.want[k] != l.lengths[k]
		l.lengths[k] = 0
		if k+1 < l.rank {
			l.lengths[k+1]++
		}
	}
}

// shape returns the shape of all lists, the outer length first; nil if they differ.
func (l *listLengths) shape() []int {
	if !l.begun || l.differ {
		return nil
	}
	// The last list has no successor whose level would end it.
	if l.close(0); l.differ {
		return nil
	}
	shape := slices.Clone(l.want[:l.rank])
	slices.Reverse(shape)
	return shape
}
