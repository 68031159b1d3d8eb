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

// columnScan goes through a column, apart from the others, to find out what only all its
// values say: whether lists have one length, or which words there are.
type columnScan struct {
	column  *leafColumn
	lists   *listLengths    // nil: they are not asked for
	classes map[string]bool // nil: they are not asked for
}

// newColumnScan returns nil if all is known of the column.
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

// done reports that no further value can change what was found.
func (s *columnScan) done() bool { return s.lists != nil && s.lists.differ }

// file goes through the column's pages of one file.
func (s *columnScan) file(ctx context.Context, p *parquet.File) error {
	for _, g := range p.RowGroups() {
		if s.done() {
			return nil
		}
		if err := s.chunk(ctx, g.ColumnChunks()[s.column.leaf.ColumnIndex]); err != nil {
			return fmt.Errorf("column %s: %w", s.column.name, err)
		}
	}
	return nil
}

// chunk goes through the pages of a column of one row group, until everything that the scan looks for is known.
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
		if err != nil || s.done() {
			if err == io.EOF {
				err = nil
			}
			return errors.Join(err, pages.Close())
		}
	}
}

// page looks at one page. Lengths of lists follow from the levels alone, and their values stay encoded.
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

// finish gives the column what was found.
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

// listLengths follows the levels of a column of lists, or of lists of lists, as long as all
// have one shape.
type listLengths struct {
	rank, most    int // of repetition, of definition
	lengths, want [2]int
	begun, differ bool // there was a value; the lengths differ
}

func newListLengths(rank, most int) *listLengths {
	return &listLengths{rank: rank, most: most}
}

// add takes the levels of one more page into account.
func (l *listLengths) add(repetition, definition []byte, values int64) {
	if int64(len(repetition)) != values || int64(len(definition)) != values {
		l.differ = true // levels that are not there say nothing
	}
	for i := 0; i < len(repetition) && !l.differ; i++ {
		l.level(int(repetition[i]), int(definition[i]))
	}
}

// level takes one value: level r begins a row at 0, an inner list at 1.
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

// close ends the innermost list and, where r is 0, the row.
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

// shape returns the lengths that all lists have, the outer first, nil if they differ.
func (l *listLengths) shape() []int {
	if !l.begun || l.differ {
		return nil
	}
	if l.close(0); l.differ {
		return nil
	}
	shape := slices.Clone(l.want[:l.rank])
	slices.Reverse(shape)
	return shape
}
