package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const measured = `a machine
peers: 1

BenchmarkX 1 2 ns/op

| work | set | times |
| ---- | --- | ----- |
| a    | x   | 3.00 [2.00..4.00] |
| a    | y   | 2.50x |
| b    | x   | 1,200 |

more

| rest | times |
| ---- | - |
| a    | 1 |
| r    | 7 |
`

const filled = `top
<!-- table p: work -->

| work | set | times             |
| ---- | --- | ----------------- |
| a    | x   | 3.00 [2.00..4.00] |
| a    | y   | 2.50x             |
| b    | x   | 1,200             |

<!-- end -->
<!-- table p: work; rows a / y | b; columns times -->

| work | times |
| ---- | ----- |
| a    | 2.50x |
| b    | 1,200 |

<!-- end -->
<!-- across p: times; rest | work; rows r | b -->

| times | rest | work  |
| ----- | ---- | ----- |
| r     | 7    | -     |
| b     | -    | 1,200 |

<!-- end -->
<!-- pivot p: work; set; times -->

| times | x     | y     |
| ----- | ----- | ----- |
| a     | 3.00  | 2.50x |
| b     | 1,200 | -     |

<!-- end -->
<!-- text p -->

` + "```text\na machine\npeers: 1\n```" + `

<!-- end -->
end
`

func TestPlacesAreFilled(t *testing.T) {
	all := results{"p": parse(measured)}
	empty := place.ReplaceAllString(filled, "$1<!-- end -->")
	for _, page := range []string{empty, filled} {
		if got, err := all.fill(page); err != nil || got != filled {
			t.Errorf("%v\n%s", err, got)
		}
	}
}

func TestWrongPlaces(t *testing.T) {
	all := results{"p": parse(measured)}
	for name, want := range map[string]string{
		"table p: other":               `p has no table "other"; it has ["work" "rest"]`,
		"table q-x: work":              `no results of "q-x"; ONLY=q bench/run docs`,
		"table p: work; columns speed": `has not all of the columns ["speed"]`,
		"table p: work; rows c":        "none of the rows",
		"table p: work; all":           "neither rows nor columns",
		"across p: n; work":            `"work" has no column "n"`,
		"across p: times":              "names a column, but no tables",
		"pivot p: work; set":           "does not name a table",
		"pivot p: work; set; speed":    `not both of the columns "set" and "speed"`,
		"ratios":                       `no results of "transforms"`,
	} {
		page := "<!-- " + name + " -->\n<!-- end -->"
		if got, err := all.fill(page); err == nil || !strings.Contains(err.Error(), want) || got != page {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// What was measured takes the place of a program's rows in the CSV file, and the pages follow.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	page, tables, kept := filepath.Join(dir, "page.md"), filepath.Join(dir, "all.csv"), filepath.Join(dir, "kept")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(kept, 0o777); err != nil {
		t.Fatal(err)
	}
	write(page, "<!-- table p: rest -->\n<!-- end -->\n<!-- table q: work -->\n<!-- end -->\n")
	write(tables, string(results{"p": parse("old\n"), "q": parse(measured)}.csv()))
	if err := run(kept, tables, "", []string{page}); err == nil {
		t.Error("no results, and no error")
	}
	write(filepath.Join(kept, "p.txt"), measured)
	if err := run(kept, tables, "", []string{page}); err != nil {
		t.Fatal(err)
	}
	if text := read(t, page); !strings.Contains(text, "| r    | 7     |\n") || !strings.Contains(text, "| a    | y   | 2.50x ") {
		t.Error(text)
	}
	again, err := readCSV(tables)
	if want := string(results{"p": parse(measured), "q": parse(measured)}.csv()); err != nil || string(again.csv()) != want {
		t.Errorf("%v\n%s", err, again.csv())
	}
}

// The committed pages and charts are what the CSV file says.
func TestPagesHaveTheirFigures(t *testing.T) {
	all, err := readCSV("../results.csv")
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, name := range []string{"docs/benchmarks.md", "README.md", "bench/AIMS.md"} {
		texts[name] = read(t, "../../"+name)
		if got, err := all.fill(texts[name]); err != nil || got != texts[name] {
			t.Errorf("%s: its numbers differ from bench/results.csv (%v); write them by bench/run pages", name, err)
		}
	}
	charts, err := all.charts()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range charts {
		if read(t, "../../docs/"+name) != text {
			t.Errorf("docs/%s is not made from the tables; write it by bench/run pages", name)
		}
		if text := strings.Join([]string{texts["docs/benchmarks.md"], texts["README.md"]}, ""); !strings.Contains(text, name+")") {
			t.Errorf("no page shows %s", name)
		}
	}
	if found, err := filepath.Glob("../../docs/*.svg"); err != nil || len(found) != len(charts) {
		t.Errorf("%d charts in docs, want %d, %v", len(found), len(charts), err)
	}
	for _, p := range speed { // nobody's row is left out of the README's chart
		table, err := all.table(p.program, p.head)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range table.cells[1:] {
			if row[0] != inGo && !strings.Contains(charts["speed.svg"], ">"+row[0]+"<") {
				t.Errorf("the README's chart has no bar of %s", row[0])
			}
		}
	}
	if string(all.csv()) != read(t, "../results.csv") {
		t.Error("bench/results.csv is not as publish writes it; write it by bench/run docs")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
