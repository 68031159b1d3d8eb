package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// table has the cells of a table in Markdown, without the rule. The first row is the head.
type table struct{ cells [][]string }

func (t *table) head() string { return t.cells[0][0] }

// result is the output of one program.
type result struct {
	tables []table
	text   []string // what it says first, of the machine, up to an empty line
}

// results has the result of each program, by its name. As CSV, a row has the program, the head of the table and the
// cells; rows of text have no head.
type results map[string]*result

// notMeasured is the name of a program without results.
type notMeasured string

func (n notMeasured) Error() string {
	return fmt.Sprintf("there are no results of %q; ONLY=%s bench/run docs measures them", string(n), strings.SplitN(string(n), "-", 2)[0])
}

// of returns the result of a program, which it adds.
func (r results) of(program string) *result {
	if r[program] == nil {
		r[program] = &result{}
	}
	return r[program]
}

func readCSV(path string) (results, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows := csv.NewReader(f)
	rows.FieldsPerRecord = -1
	all, err := rows.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := make(results)
	for i, row := range all {
		switch to := r.of(row[0]); {
		case len(row) < 3:
			return nil, fmt.Errorf("%s: row %d has %d cells, want at least 3", path, i+1, len(row))
		case row[1] == "":
			to.text = append(to.text, row[2])
		case row[1] == row[2]:
			to.tables = append(to.tables, table{[][]string{row[2:]}})
		case len(to.tables) == 0 || to.tables[len(to.tables)-1].head() != row[1]:
			return nil, fmt.Errorf("%s: row %d is of the table %q, which has not begun", path, i+1, row[1])
		default:
			t := &to.tables[len(to.tables)-1]
			t.cells = append(t.cells, row[2:])
		}
	}
	return r, nil
}

func (r results) csv() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var rows [][]string
	for program, of := range r {
		for _, line := range of.text {
			rows = append(rows, []string{program, "", line})
		}
		for _, t := range of.tables {
			for _, row := range t.cells {
				rows = append(rows, slices.Concat([]string{program, t.head()}, row))
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if err := w.WriteAll(rows); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}

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

// parse separates a program's tables from the text before them.
func parse(text string) *result {
	r := &result{}
	within, said := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if !strings.HasPrefix(line, "|") {
			within = false
			said = said || line == "" && len(r.text) > 0
			if line != "" && !said && !strings.HasPrefix(line, "Benchmark") && !strings.HasPrefix(line, "## ") {
				r.text = append(r.text, line)
			}
			continue
		}
		if !within {
			r.tables = append(r.tables, table{})
			within = true
		}
		t := &r.tables[len(r.tables)-1]
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
	return nil, fmt.Errorf("%s has no table %q; it has %q", program, head, heads)
}
