package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// tableScan is the result of a pass over a table, or over some of its rows.
type tableScan struct {
	selection []column.Selection
	order     []string               // columns as they first come
	columns   []*columnScan          // in that order
	named     map[string]*columnScan // the same by name
	rows      int64
}

// columnScan describes a column.
type columnScan struct {
	name    string
	at      [2]int64 // row and place in it where the column first came
	skip    bool     // its cells are not examined
	guess   column.Guess
	odd     string // the first cell that is not a number
	oddRow  int64
	classes map[string]bool // of a column that is a label on request, or by its name
}

func newTableScan(selection []column.Selection) *tableScan {
	return &tableScan{selection: selection, named: make(map[string]*columnScan)}
}

// scan goes through all rows. One goroutine reads them, and all CPUs parse them.
func (t *table) scan(ctx context.Context, seen func(int64), selection []column.Selection) (*tableScan, error) {
	s := newTableScan(selection)
	var work rowWork
	for row, err := range t.rows() {
		if err == nil && s.rows%rowBlock == 0 {
			err = context.Cause(ctx)
		}
		if err == nil && s.rows == 0 {
			if err = t.first(row, s); err == nil && s.idle(row.file.header != nil) {
				t.unseen = row.file.header == nil
				s.sort()
				s.rows, err = t.count(ctx, seen)
				return s, err
			} else if err == nil {
				work.begin(t.format, selection)
			}
		} else if err == nil {
			work.add(row, s.rows)
		}
		if err != nil {
			work.end()
			return nil, err
		}
		s.rows++
		seen(1)
	}
	if s.rows == 0 {
		return nil, errors.New("holds no rows")
	}
	for _, part := range work.end() {
		s.merge(part)
	}
	s.sort()
	return s, nil
}

// count returns how many rows all files have.
func (t *table) count(ctx context.Context, seen func(int64)) (rows int64, err error) {
	err = t.eachFile(func(file *tableFile) error {
		for {
			b, err := nextBlock(file)
			if b != nil {
				n := b.count()
				rows += n
				seen(n)
			}
			if err = cmp.Or(err, context.Cause(ctx)); err != nil {
				return err
			}
		}
	})
	return rows, err
}

// rowWork has goroutines look at rows. The zero value looks at none.
type rowWork struct {
	parts []*tableScan
	rows  chan rowBatch
	done  sync.WaitGroup
	batch rowBatch
}

// rowBatch is some rows that follow each other.
type rowBatch struct {
	rows  []*tableRow
	bytes int
	first int64 // number of the first
}

func (w *rowWork) begin(format tableFormat, selection []column.Selection) {
	n := runtime.GOMAXPROCS(0)
	w.rows = make(chan rowBatch, n)
	for range n {
		s := newTableScan(selection)
		w.parts = append(w.parts, s)
		w.done.Go(func() {
			for b := range w.rows {
				for i, row := range b.rows {
					at := b.first + int64(i)
					// a bad row will be a bad sample
					_ = format.each(row, func(k int, column string, c column.Cell) { s.add(at, k, column, c) })
				}
			}
		})
	}
}

func (w *rowWork) add(row *tableRow, number int64) {
	if w.rows == nil {
		return
	}
	if len(w.batch.rows) == 0 {
		w.batch = rowBatch{rows: make([]*tableRow, 0, rowBlock), first: number}
	}
	w.batch.rows, w.batch.bytes = append(w.batch.rows, row), w.batch.bytes+len(row.text)
	if len(w.batch.rows) == rowBlock || w.batch.bytes >= lineBlock {
		w.rows <- w.batch
		w.batch = rowBatch{}
	}
}

// end waits for the goroutines and returns what they have found.
func (w *rowWork) end() []*tableScan {
	if w.rows == nil {
		return nil
	}
	w.rows <- w.batch
	close(w.rows)
	w.done.Wait()
	return w.parts
}

// first takes the first row into account, without which there are no columns. A name of
// --fields that the header does not have is an error now, and not after all rows.
func (t *table) first(row *tableRow, s *tableScan) error {
	err := t.format.each(row, func(i int, column string, c column.Cell) { s.add(0, i, column, c) })
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

// idle reports whether the rows after the first can add nothing: what is needed of every column
// is known, and all columns have been found. Without a header, a row with another column is bad.
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

// add takes a cell into account: the k-th of that row.
func (s *tableScan) add(row int64, k int, name string, c column.Cell) {
	var g *columnScan
	if k < len(s.columns) && s.columns[k].name == name {
		g = s.columns[k]
	} else if g = s.named[name]; g == nil {
		name = strings.Clone(name)
		g = &columnScan{name: name, at: [2]int64{row, int64(k)}, skip: !asks(s.selection, name)}
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
	if g.odd == "" && g.guess.Words() {
		g.odd, g.oddRow = strings.Clone(c.Text), row
	}
	if g.classes != nil && !c.Missing() && !g.classes[c.Text] && len(g.classes) <= column.MaxClasses {
		g.classes[strings.Clone(c.Text)] = true
	}
}

// asks reports whether the cells of a column have to be looked at: it is wanted without a type,
// or its classes are.
func asks(selection []column.Selection, name string) bool {
	return len(selection) == 0 || slices.ContainsFunc(selection, func(w column.Selection) bool {
		if w.CellType() != "" && w.CellType() != "label" {
			return false
		}
		_, missing := column.Matching(w.Column, []string{name})
		return w.Column == name || missing == "" || strings.Contains(w.Column, "+")
	})
}

// merge adds what was found in other rows.
func (s *tableScan) merge(part *tableScan) {
	for _, c := range part.columns {
		have := s.named[c.name]
		if have == nil {
			s.columns, s.named[c.name] = append(s.columns, c), c
			continue
		}
		have.at = minPlace(have.at, c.at)
		have.guess.Merge(&c.guess)
		if c.odd != "" && (have.odd == "" || c.oddRow < have.oddRow) {
			have.odd, have.oddRow = c.odd, c.oddRow
		}
		for name := range c.classes {
			have.classes[name] = true
		}
	}
}

func minPlace(a, b [2]int64) [2]int64 {
	if slices.Compare(a[:], b[:]) <= 0 {
		return a
	}
	return b
}

// sort puts the columns into the order in which they first come.
func (s *tableScan) sort() {
	slices.SortStableFunc(s.columns, func(a, b *columnScan) int { return slices.Compare(a.at[:], b.at[:]) })
	s.order = nil
	for _, c := range s.columns {
		s.order = append(s.order, c.name)
	}
}

// decide chooses the columns from the scan and the selection.
func (t *table) decide(s *tableScan, selection []column.Selection) error {
	if len(selection) == 0 {
		for _, name := range s.order {
			selection = append(selection, column.Selection{Column: name})
		}
	}
	t.cells, t.order = make(map[string][]int), s.order
	for _, w := range selection {
		c, err := s.column(w)
		if err != nil {
			return err
		}
		t.add(c)
	}
	for _, name := range s.order {
		if t.cells[name] == nil {
			t.cells[name] = []int{} // known, and wanted by none
		}
		t.ordered = append(t.ordered, t.cells[name])
		if !isPlain(name) || strings.Contains(name, `"`) {
			name = ""
		}
		t.keys = append(t.keys, name)
	}
	t.info.Count = s.rows
	t.hintConcat()
	return t.checkNames()
}

// column returns the column that is wanted.
func (s *tableScan) column(w column.Selection) (tableColumn, error) {
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
	} else if typ.Kind == column.Text && w.CellType() == "" && c.guess.Numbers() && c.odd != "" {
		found.note = fmt.Sprintf(" (%.40q in row %d is not a number; --fields %s:float32 takes numbers only)",
			c.odd, c.oddRow+1, w.Column)
	}
	return found, nil
}

func (t *table) add(c tableColumn) {
	c.field.Origin = fmt.Sprintf("column %s as %v%s", c.name, c.typ, c.note)
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

func (t *table) checkNames() error {
	first := make(map[string]string, len(t.columns))
	for _, c := range t.columns {
		if other, twice := first[c.field.Name]; twice {
			return fmt.Errorf("columns %q and %q would both be the field %q; name them with --fields", other, c.name,
				c.field.Name)
		}
		first[c.field.Name] = c.name
	}
	return nil
}
