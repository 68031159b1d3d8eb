package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// place is the text between two comments of a page.
var place = regexp.MustCompile(`(?s)(<!-- (table|across|pivot|text|targets|ratios)( [^\n]*?)? -->\n).*?<!-- end -->`)

// fill returns a page with its places filled.
func (r results) fill(page string) (string, error) {
	var errs []error
	page = place.ReplaceAllStringFunc(page, func(old string) string {
		m := place.FindStringSubmatch(old)
		lines, err := r.lines(m[2], strings.TrimSpace(m[3]))
		if err != nil {
			errs = append(errs, err)
			return old
		}
		return m[1] + "\n" + strings.Join(lines, "\n") + "\n\n<!-- end -->"
	})
	return page, errors.Join(errs...)
}

// lines returns the text of a place.
func (r results) lines(kind, name string) ([]string, error) {
	switch kind {
	case "targets":
		return r.targets()
	case "ratios":
		return r.ratios()
	case "text":
		if r[name] == nil {
			return nil, notMeasured(name)
		}
		return slices.Concat([]string{"```text"}, r[name].text, []string{"```"}), nil
	}
	program, rest, _ := strings.Cut(name, ": ")
	parts := strings.Split(rest, "; ")
	if kind == "pivot" {
		if len(parts) < 3 {
			return nil, fmt.Errorf("%q does not name a table, a column of names and a column of numbers", name)
		}
		t, err := r.table(program, parts[0])
		if err != nil {
			return nil, err
		}
		cells, err := t.chosen(parts[3:])
		if err != nil {
			return nil, err
		}
		cells, err = pivot(cells, parts[1], parts[2])
		return markdown(cells), err
	}
	if kind == "across" {
		if len(parts) < 2 {
			return nil, fmt.Errorf("%q names a column, but no tables", name)
		}
		t, err := r.across(program, parts[0], strings.Split(parts[1], " | "))
		if err != nil {
			return nil, err
		}
		cells, err := t.chosen(parts[2:])
		return markdown(cells), err
	}
	t, err := r.table(program, parts[0])
	if err != nil {
		return nil, err
	}
	cells, err := t.chosen(parts[1:])
	return markdown(cells), err
}

// across returns a table of one column of several tables: of each, what stands before the lowest and highest of the
// rounds.
func (r results) across(program, column string, heads []string) (*table, error) {
	out := &table{cells: [][]string{{column}}}
	for i, head := range heads {
		t, err := r.table(program, head)
		if err != nil {
			return nil, err
		}
		at := slices.Index(t.cells[0], column)
		if at < 0 {
			return nil, fmt.Errorf("the table %q has no column %q", head, column)
		}
		out.cells[0] = append(out.cells[0], head)
		for _, row := range t.cells[1:] {
			k := slices.IndexFunc(out.cells, func(of []string) bool { return of[0] == row[0] })
			if k <= 0 {
				k = len(out.cells)
				out.cells = append(out.cells, append([]string{row[0]}, slices.Repeat([]string{"-"}, i)...))
			}
			out.cells[k] = append(out.cells[k], median(row[at]))
		}
		for k := range out.cells {
			for len(out.cells[k]) < i+2 {
				out.cells[k] = append(out.cells[k], "-")
			}
		}
	}
	return out, nil
}

// pivot returns a row for each first cell of a table, with the medians of the column numbers, and a column for each value
// of the column names.
func pivot(cells [][]string, names, numbers string) ([][]string, error) {
	name, number := slices.Index(cells[0], names), slices.Index(cells[0], numbers)
	if name < 0 || number < 0 {
		return nil, fmt.Errorf("there are not both of the columns %q and %q, but %q", names, numbers, cells[0])
	}
	out := [][]string{{numbers}}
	for _, row := range cells[1:] {
		if !slices.Contains(out[0][1:], row[name]) {
			out[0] = append(out[0], row[name])
		}
	}
	for _, row := range cells[1:] {
		k := slices.IndexFunc(out[1:], func(of []string) bool { return of[0] == row[0] }) + 1
		if k == 0 {
			k = len(out)
			out = append(out, append([]string{row[0]}, slices.Repeat([]string{"-"}, len(out[0])-1)...))
		}
		out[k][1+slices.Index(out[0][1:], row[name])] = median(row[number])
	}
	return out, nil
}

// median returns the median in a text that has the lowest and highest of the rounds after it.
func median(cell string) string {
	number, _, _ := strings.Cut(cell, " [")
	return number
}

// chosen returns the rows and columns that a place asks for.
func (t *table) chosen(wanted []string) ([][]string, error) {
	cells := t.cells
	for _, w := range wanted {
		kind, names, _ := strings.Cut(w, " ")
		some := strings.Split(names, " | ")
		switch kind {
		case "rows":
			f := figure{rows: some}
			cells = slices.Concat(cells[:1], slices.DeleteFunc(slices.Clone(cells[1:]), func(row []string) bool { return !f.matches(row) }))
		case "columns":
			var at []int
			for i, name := range cells[0] {
				if i == 0 || slices.Contains(some, name) {
					at = append(at, i)
				}
			}
			if len(at) != len(some)+1 {
				return nil, fmt.Errorf("the table %q has not all of the columns %q, but %q", t.head(), some, cells[0])
			}
			cells = columns(cells, at)
		default:
			return nil, fmt.Errorf("%q is neither rows nor columns", w)
		}
	}
	if len(cells) < 2 {
		return nil, fmt.Errorf("the table %q has none of the rows %q", t.head(), wanted)
	}
	return cells, nil
}

func columns(cells [][]string, at []int) [][]string {
	out := make([][]string, len(cells))
	for i, row := range cells {
		for _, k := range at {
			out[i] = append(out[i], row[k])
		}
	}
	return out
}

// markdown returns the lines of a table.
func markdown(cells [][]string) []string {
	if len(cells) == 0 {
		return nil
	}
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], len([]rune(c)))
		}
	}
	var lines []string
	for i, row := range cells {
		line, rule := "|", "|"
		for k, w := range widths {
			line += " " + row[k] + strings.Repeat(" ", w-len([]rune(row[k]))) + " |"
			rule += " " + strings.Repeat("-", max(3, w)) + " |"
		}
		lines = append(lines, line)
		if i == 0 {
			lines = append(lines, rule)
		}
	}
	return lines
}
