package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// tableScan is what a pass over a table finds.
type tableScan struct {
	order   []string // columns as they first come
	guesses map[string]*guess
	classes map[string]map[string]bool // of those that are labels on request, or by name
	rows    int64
}

// maxClasses is more than any classifier has.
const maxClasses = 1 << 20

func (t *table) scan(ctx context.Context, seen func(int64), wanted []Wanted) (*tableScan, error) {
	s := &tableScan{guesses: make(map[string]*guess), classes: make(map[string]map[string]bool)}
	for _, w := range wanted {
		if w.Type == "label" {
			s.classes[w.Column] = make(map[string]bool)
		}
	}
	for row, err := range t.rows() {
		if err == nil && s.rows%1024 == 0 {
			err = context.Cause(ctx)
		}
		if err == nil && s.rows == 0 {
			err = t.first(row, s)
		} else if err == nil {
			_ = row.each(s.add) // it will be a bad sample
		}
		if err != nil {
			return nil, err
		}
		s.rows++
		seen(1)
	}
	if s.rows == 0 {
		return nil, errors.New("holds no rows")
	}
	return s, nil
}

// first takes the first row into account, without which there are no columns.
func (t *table) first(row tableRow, s *tableScan) error {
	err := row.each(s.add)
	if err != nil {
		err = fmt.Errorf("%s: %w; the first row has to be a good one, as it tells which columns there are", t.name(row.(placedRow)), err)
	}
	return err
}

func (s *tableScan) add(column string, c cell) {
	g := s.guesses[column]
	if g == nil {
		g = new(guess)
		s.guesses[column] = g
		s.order = append(s.order, column)
		if LabelName(column) && s.classes[column] == nil {
			s.classes[column] = make(map[string]bool)
		}
	}
	g.add(c)
	if classes := s.classes[column]; classes != nil && !c.missing() && len(classes) <= maxClasses {
		classes[c.text] = true
	}
}

// decide makes columns of what was found and of what is wanted.
func (t *table) decide(s *tableScan, wanted []Wanted) error {
	if len(wanted) == 0 {
		for _, name := range s.order {
			wanted = append(wanted, Wanted{Column: name})
		}
	}
	t.cells = make(map[string][]int)
	for _, w := range wanted {
		c, err := s.column(w)
		if err != nil {
			return err
		}
		t.add(c)
	}
	t.info.Count = s.rows
	t.hintJoin()
	return t.checkNames()
}

// column returns the column that is wanted.
func (s *tableScan) column(w Wanted) (tableColumn, error) {
	g := s.guesses[w.Column]
	if g == nil {
		return s.join(w)
	}
	typ := g.result(w.Column)
	if w.Type != "" {
		typ, _ = parseType(w.Type) // ParseFields has checked it
	}
	if err := typ.setClasses(g, s.classes[w.Column]); err != nil {
		return tableColumn{}, fmt.Errorf("column %q: %w", w.Column, err)
	}
	return tableColumn{name: w.Column, from: []string{w.Column}, typ: typ, field: typ.field(w.fieldName())}, nil
}

// setClasses numbers the classes of a label by name, unless they are numbers.
func (t *columnType) setClasses(g *guess, names map[string]bool) error {
	if t.kind != label || !g.notInt {
		return nil
	}
	if len(names) > maxClasses {
		return fmt.Errorf("more than %d classes; words that are no classes are of type text", maxClasses)
	}
	t.classes = make(map[string]int, len(names))
	for i, name := range slices.Sorted(keys(names)) {
		t.classes[name] = i
	}
	return nil
}

func (t *table) add(c tableColumn) {
	c.field.Origin = fmt.Sprintf("column %s as %v", c.name, c.typ)
	if c.joined {
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
	for i, c := range t.columns {
		for _, other := range t.columns[:i] {
			if other.field.Name == c.field.Name {
				return fmt.Errorf("columns %q and %q would both be the field %q; name them with --fields", other.name, c.name, c.field.Name)
			}
		}
	}
	return nil
}
