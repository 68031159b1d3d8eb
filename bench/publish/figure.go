package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

// figure locates a number: the lowest (or the highest, if more is worse) in a column, of the rows
// whose first cells begin like this.
type figure struct {
	program, head string   // of a table, or of several with severalHeads between them
	rows          []string // what the first cells begin with, with " / " between cells
	column        string
	worst         bool // the highest of them
}

// severalHeads is a text that no head of a table has.
const severalHeads = " | "

// number returns the number at f: of "1.09 [1.05..1.15]" the first.
func (r results) number(f figure) (float64, error) {
	var found []float64
	for _, head := range strings.Split(f.head, severalHeads) {
		t, err := r.table(f.program, head)
		if err != nil {
			return 0, err
		}
		at := slices.Index(t.cells[0], f.column)
		if at < 0 {
			return 0, fmt.Errorf("%s, table %q has no column %q, but %q", f.program, head, f.column, t.cells[0])
		}
		before := len(found)
		for _, row := range t.cells[1:] {
			if !f.matches(row) {
				continue
			}
			x, err := leading(row[at])
			if err != nil {
				return 0, fmt.Errorf("%s, table %q, row %q: %w", f.program, head, row[0], err)
			}
			found = append(found, x)
		}
		if len(found) == before {
			return 0, fmt.Errorf("%s, table %q has no row %q", f.program, head, f.rows)
		}
	}
	if f.worst {
		return slices.Max(found), nil
	}
	return slices.Min(found), nil
}

func (f figure) matches(row []string) bool {
	for _, want := range f.rows {
		match := true
		for i, part := range strings.Split(want, " / ") {
			match = match && i < len(row) && strings.HasPrefix(row[i], part)
		}
		if match {
			return true
		}
	}
	return false
}

// leading reads the number that a cell begins with.
func leading(cell string) (float64, error) {
	text := strings.TrimSuffix(strings.ReplaceAll(strings.SplitN(cell+" ", " ", 2)[0], ",", ""), "x")
	return strconv.ParseFloat(text, 64)
}

func digits(x float64) string { return measure.Digits(x) }
