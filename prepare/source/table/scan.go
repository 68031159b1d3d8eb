package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// tableScan has the findings about a table, or about some of its rows.
type tableScan struct {
	selection []column.Selection
	order     []string               // names of columns in the order of their first occurrence
	columns   []*columnScan          // in that order
	named     map[string]*columnScan // the same by name
	rows      int64
}

// columnScan has the findings about a column.
type columnScan struct {
	name    string
	at      place // first occurrence of the column
	skip    bool  // its cells are not examined
	guess   column.Guess
	isOdd   bool
	odd     string // first cell that is no number, if isOdd
	oddAt   place
	oddRow  int64           // row of that cell in the table, set after the pass
	classes map[string]bool // class names; nil if the column is no label
}

// place is the position of a cell in a table: block, row in the block, cell in the row. Positions are compared
// instead of row numbers, as the rows of earlier blocks are not counted yet while goroutines work.
type place [3]int64

func newTableScan(selection []column.Selection) *tableScan {
	return &tableScan{selection: selection, named: make(map[string]*columnScan)}
}

// look examines all cells of a block and returns the number of rows. A bad row is skipped, and becomes a bad
// sample.
func (s *tableScan) look(format tableFormat, b scanBlock) (rows int64) {
	cell := func(k int, name string, c column.Cell) { s.add(place{b.number, rows, int64(k)}, name, c) }
	for row := range b.each {
		_ = format.each(row, cell)
		rows++
	}
	return rows
}

// first examines the first row, which says which columns there are. A name of --fields that is not in the header is
// an error now, and not after a pass over all rows.
func (t *table) first(row *tableRow, s *tableScan) error {
	err := t.format.each(row, func(i int, column string, c column.Cell) { s.add(place{0, 0, int64(i)}, column, c) })
	if err != nil {
		return fmt.Errorf("%s: %w; the first row must be good: it says which columns there are", t.name(row), err)
	}
	if n := len(s.order); len(s.selection) == 0 && n > layout.MaxFields {
		return fmt.Errorf("%d columns, and a dataset has at most %d fields; choose some with --fields, or make one field "+
			"of columns that follow each other", n, layout.MaxFields)
	}
	for _, w := range s.selection {
		if row.file.header != nil && s.named[w.Column] == nil {
			if _, missing := column.Matching(w.Column, s.order); missing != "" {
				return fmt.Errorf("--fields %s: there is no column %q%s", w, missing, suggest.Hint(missing, s.order))
			}
		}
	}
	return nil
}

// idle reports whether further rows cannot add anything: all columns are known, and no type depends on cells. Then
// rows are only counted. header says that the file has a header; without one, a row with another column is bad.
func (s *tableScan) idle(header bool) bool {
	if len(s.selection) == 0 {
		return false
	}
	for _, w := range s.selection {
		if header || s.named[w.Column] != nil {
			continue
		}
		names, missing := column.Matching(w.Column, s.order)
		if typ, _ := column.ParseType(w.CellType()); missing != "" || typ.Shape == nil ||
			tensor.Shape(typ.Shape).Elems() != len(names) {
			return false
		}
	}
	return !slices.ContainsFunc(s.columns, func(c *columnScan) bool { return !c.skip })
}

// add examines a cell. Texts are cloned before they are kept, as they share the memory of a block.
func (s *tableScan) add(at place, name string, c column.Cell) {
	var g *columnScan
	if k := at[2]; k < int64(len(s.columns)) && s.columns[k].name == name {
		g = s.columns[k]
	} else if g = s.named[name]; g == nil {
		name = strings.Clone(name)
		g = &columnScan{name: name, at: at, skip: !asks(s.selection, name)}
		if !g.skip && (column.LabelName(name) || slices.ContainsFunc(s.selection, func(w column.Selection) bool {
			return w.Column == name && w.CellType() == "label"
		})) {
			g.classes = make(map[string]bool)
		}
		s.columns, s.order, s.named[name] = append(s.columns, g), append(s.order, name), g
	}
	if g.skip {
		return
	}
	g.guess.Add(c)
	if !g.isOdd && g.guess.Words() {
		g.isOdd, g.odd, g.oddAt = true, strings.Clone(c.Text), at
	}
	if g.classes != nil && !c.Missing() && !g.classes[c.Text] && len(g.classes) <= column.MaxClasses {
		g.classes[strings.Clone(c.Text)] = true
	}
}

// knowsText reports whether add would change nothing for this cell of a column of texts.
func (c *columnScan) knowsText(cell column.Cell) bool {
	if !c.isOdd || !c.guess.KnowsText(cell) {
		return false
	}
	return c.classes == nil || cell.Missing() || c.classes[cell.Text] || len(c.classes) > column.MaxClasses
}

// asks reports whether the cells of a column must be examined: the column is selected without a type, or its class
// names are needed.
func asks(selection []column.Selection, name string) bool {
	return len(selection) == 0 || slices.ContainsFunc(selection, func(w column.Selection) bool {
		if w.CellType() != "" && w.CellType() != "label" {
			return false
		}
		_, missing := column.Matching(w.Column, []string{name})
		return w.Column == name || missing == "" || strings.Contains(w.Column, "+")
	})
}

// merge adds the findings about other rows. The first odd cell counts, so that the result does not depend on
// which goroutine had which rows.
func (s *tableScan) merge(part *tableScan) {
	for _, c := range part.columns {
		have := s.named[c.name]
		if have == nil {
			s.columns, s.named[c.name] = append(s.columns, c), c
			continue
		}
		have.at = minPlace(have.at, c.at)
		have.guess.Merge(&c.guess)
		if c.isOdd && (!have.isOdd || slices.Compare(c.oddAt[:], have.oddAt[:]) < 0) {
			have.isOdd, have.odd, have.oddAt = true, c.odd, c.oddAt
		}
		for name := range c.classes {
			have.classes[name] = true
		}
	}
}

// minPlace returns the earlier of two positions.
func minPlace(a, b place) place {
	if slices.Compare(a[:], b[:]) <= 0 {
		return a
	}
	return b
}

// sort sorts the columns by their first occurrence.
func (s *tableScan) sort() {
	slices.SortStableFunc(s.columns, func(a, b *columnScan) int { return slices.Compare(a.at[:], b.at[:]) })
	s.order = nil
	for _, c := range s.columns {
		s.order = append(s.order, c.name)
	}
}

// decide chooses the fields from the scan and the selection.
func (t *table) decide(s *tableScan, selection []column.Selection) error {
	if len(selection) == 0 {
		for _, name := range s.order {
			selection = append(selection, column.Selection{Column: name})
		}
	}
	t.cells = make(map[string][]int)
	t.expect(s.order)
	for _, w := range selection {
		c, err := s.column(w)
		if err != nil {
			return err
		}
		t.add(c)
	}
	for _, name := range s.order {
		if t.cells[name] == nil {
			t.cells[name] = []int{} // the column is known, and no field needs it
		}
		t.ordered = append(t.ordered, t.cells[name])
	}
	t.info.Count = s.rows
	t.hintConcat()
	return column.Distinct(selection, source.FieldNames(t.info.Fields))
}

// expect sets the order in which rows are expected to have their columns.
func (t *table) expect(order []string) {
	t.order, t.keys = slices.Clone(order), nil
	for _, name := range order {
		if !isPlain(name) || strings.Contains(name, `"`) {
			name = ""
		}
		t.keys = append(t.keys, name)
	}
}

// column returns the field for a selection. If a column of numbers became text because of some cell, the note says
// which.
func (s *tableScan) column(w column.Selection) (tableColumn, error) {
	// A name that is no column may be a glob or a sum of names.
	c := s.named[w.Column]
	if c == nil {
		return s.concat(w)
	}
	typ := c.guess.Result(w.Column)
	if w.CellType() != "" {
		typ, _ = column.ParseType(w.CellType()) // ParseFields has checked it
	}
	if err := typ.SetClasses(&c.guess, c.classes); err != nil {
		return tableColumn{}, fmt.Errorf("column %q: %w", w.Column, err)
	}
	found := tableColumn{name: w.Column, from: []string{w.Column}, typ: typ, field: typ.FieldOf(w.FieldName())}
	if typ.Kind == column.Text && w.CellType() == "" && c.guess.Inexact() {
		found.note = " (it has fractions or NaN, and integers that float64 does not hold)"
	} else if typ.Kind == column.Text && w.CellType() == "" && c.guess.Numbers() && c.isOdd {
		found.note = fmt.Sprintf(" (%.40q in row %d is not a number; --fields %s:float32 takes numbers only)",
			c.odd, c.oddRow+1, w.Column)
	}
	return found, nil
}

// add adds a field and assigns positions to its cells.
func (t *table) add(c tableColumn) {
	c.field.Column, c.field.Origin = c.name, fmt.Sprintf("column %s as %v%s", c.name, c.typ, c.note)
	if c.concat {
		c.field.Origin = fmt.Sprintf("columns %s (%d) as %v", c.name, len(c.from), c.typ)
	}
	for i, name := range c.from {
		t.cells[name] = append(t.cells[name], t.width+i)
	}
	t.width += len(c.from)
	t.columns = append(t.columns, c)
	t.info.Fields = append(t.info.Fields, c.field)
}

// scanBlock is a block with its number in the table.
type scanBlock struct {
	*block
	number int64
}

// names reports whether the columns of the scan have exactly these names, in this order.
func (s *tableScan) names(order []string) bool {
	if len(order) != len(s.columns) {
		return false
	}
	for k, c := range s.columns {
		if c.name != order[k] {
			return false
		}
	}
	return true
}
