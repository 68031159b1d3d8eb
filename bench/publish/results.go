package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// table is one of Markdown, as lines and as cells.
type table struct {
	lines []string
	cells [][]string // without the rule
}

func (t *table) head() string { return t.cells[0][0] }

// result is the output of one program.
type result struct {
	tables []table
	text   []string // all lines except tables and benchmark lines
}

// results are those of all programs, by name.
type results map[string]*result

// notMeasured is the name of a program without results.
type notMeasured string

func (n notMeasured) Error() string { return "there is no " + string(n) + ".txt" }

// readResults reads the files of a folder.
func readResults(folder string) (results, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no results; make bench-docs makes them", folder)
	}
	all := make(results)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(filepath.Base(path), ".txt")] = parse(string(text))
	}
	return all, nil
}

// parse distinguishes a program's tables from its other lines. Headings and Go's benchmark lines
// are left out.
func parse(text string) *result {
	r := &result{}
	within := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		switch {
		case !strings.HasPrefix(line, "|"):
			within = false
			if !strings.HasPrefix(line, "Benchmark") && !strings.HasPrefix(line, "## ") {
				r.text = append(r.text, line)
			}
			continue
		case !within:
			r.tables = append(r.tables, table{})
			within = true
		}
		t := &r.tables[len(r.tables)-1]
		t.lines = append(t.lines, line)
		if cells := split(line); !strings.HasPrefix(cells[0], "--") {
			t.cells = append(t.cells, cells)
		}
	}
	return r
}

// split returns the cells of a line of a table.
func split(line string) []string {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// table returns the table of a program whose first column has that head.
func (r results) table(program, head string) (*table, error) {
	if r[program] == nil {
		return nil, notMeasured(program)
	}
	var heads []string
	for i := range r[program].tables {
		t := &r[program].tables[i]
		if t.head() == head {
			return t, nil
		}
		heads = append(heads, t.head())
	}
	return nil, fmt.Errorf("%s.txt has no table %q; it has %q", program, head, heads)
}

// pageTables returns the tables of a page as results, by the comments and headings that they stand
// below.
func pageTables(page string) results {
	all := make(results)
	for _, m := range place.FindAllStringSubmatch(page, -1) {
		if m[2] != "table" && m[2] != "rest" {
			continue
		}
		program, _, _ := strings.Cut(strings.TrimSpace(m[3]), ":")
		if tables := parse(m[0]).tables; len(tables) > 0 {
			if all[program] == nil {
				all[program] = &result{}
			}
			all[program].tables = append(all[program].tables, tables...)
		}
	}
	return all
}
