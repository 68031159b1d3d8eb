package main

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

| rest | n |
| ---- | - |
| r    | 1 |
`

func TestPlacesAreFilled(t *testing.T) {
	all := results{"p": parse(measured)}
	page := "top\n<!-- table p: work -->\nold\n<!-- end -->\nmiddle\n<!-- rest p -->\n<!-- end -->\n<!-- text p -->\n<!-- end -->\nend\n"
	got, errs := fill(page, all, all)
	if errs != nil {
		t.Fatal(errs)
	}
	want := "top\n<!-- table p: work -->\n\n| work | set | times |\n| ---- | --- | ----- |\n| a    | x   | 3.00 [2.00..4.00] |\n| a    | y   | 2.50x |\n| b    | x   | 1,200 |\n\n<!-- end -->\n" +
		"middle\n<!-- rest p -->\n\n| rest | n |\n| ---- | - |\n| r    | 1 |\n\n<!-- end -->\n<!-- text p -->\n\n```text\na machine\npeers: 1\n\nmore\n```\n\n<!-- end -->\nend\n"
	if bare := regexp.MustCompile(`<!-- end [0-9a-f]{8} -->`).ReplaceAllString(got, "<!-- end -->"); bare != want {
		t.Errorf("%s", bare)
	}
	if again, errs := fill(got, all, all); errs != nil || again != got {
		t.Errorf("filled again: %v\n%s", errs, again)
	}
}

func TestWhatWasNotMeasuredIsSaid(t *testing.T) {
	all := results{"p": parse(measured)}
	for page, want := range map[string]string{
		"<!-- table p: other -->\n<!-- end -->": `p.txt has no table "other"; it has ["work" "rest"]`,
		"<!-- rest q -->\n<!-- end -->":         "there is no q.txt",
		"<!-- ratios -->\n<!-- end -->":         "there is no transforms.txt",
	} {
		if got, errs := fill(page, all, all); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) || got != page {
			t.Errorf("%s: %v\n%s", page, errs, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	all := results{"p": parse(measured)}
	for _, c := range []struct {
		rows  []string
		worst bool
		want  float64
	}{
		{[]string{"a"}, false, 2.5},
		{[]string{"a"}, true, 3},
		{[]string{"a / x"}, false, 3},
		{[]string{"a", "b"}, true, 1200},
	} {
		got, err := all.number(figure{"p", "work", c.rows, "times", c.worst})
		if err != nil || got != c.want {
			t.Errorf("%q: %v, %v; want %v", c.rows, got, err, c.want)
		}
	}
	for _, f := range []figure{{"p", "work", []string{"c"}, "times", false}, {"p", "work", []string{"a"}, "time", false}, {"p", "work", []string{"a"}, "set", false}} {
		if x, err := all.number(f); err == nil {
			t.Errorf("%+v: %v", f, x)
		}
	}
}

// A ratio of Python compares with the fastest other row of its table, even where that row is ahead.
func TestRatiosNameTheNearestRival(t *testing.T) {
	old := ratios
	ratios = []ratio{inPython("work", "784 B")}
	defer func() { ratios = old }()
	all := results{"peers": parse("| 784 B | setting | records/s | us of CPU |\n| -- | -- | -- | -- |\n" +
		"| penstock, default | 2 workers | 900 | 1 |\n| PyTorch DataLoader | records | 10 | 9 |\n" +
		"| penstock in Python | default | 90 | 2 |\n| NumPy take | one loop | 100 | 1 |\n")}
	lines, err := all.ratios()
	if want := "| work | Python | NumPy take, one loop | [0.90](docs/benchmarks.md#other-loaders) |"; err != nil || !slices.Contains(lines, want) {
		t.Errorf("%q, %v", lines, err)
	}
}

// A row that misses its target shows the machine's limit, if its table has one.
func TestLimits(t *testing.T) {
	const head = "| two workers against one | fastest rounds |\n| - | - |\n| shuffled gather | 1.20 |\n"
	const touch = "| sequential, 784-byte records, touch | vs penstock, clock |\n| - | - |\n| DataLoader, 0 workers | 30 [20..40] |\n| DataLoader, 2 workers | 60 |\n"
	scaled, read := figure{"loader", "two workers against one", []string{"shuffled gather"}, "fastest rounds", false}, figure{"loader", touched("sequential", "784"), []string{"DataLoader"}, clockHead, false}
	for text, want := range map[string][2]float64{
		head + "\n" + touch: {0, 0},
		head + "| two copy() at once against one, no loader | 1.30 |\n\n" + touch + "| reading the bytes once, no loader | 0.80 |\n": {1.3, 37.5},
	} {
		all := results{"loader": parse(text)}
		if a, b := all.limit(scaled, 1.2), all.limit(read, 30); a != want[0] || b != want[1] {
			t.Errorf("%v and %v, want %v", a, b, want)
		}
	}
	for head := range limits {
		if !slices.ContainsFunc(targets, func(x target) bool { return x.figure.head == head }) {
			t.Errorf("nothing is aimed at in %q", head)
		}
	}
	if most := (results{}).limit(figure{"transforms", resizeHead, []string{"bilinear"}, "times faster", false}, 3); most != 0 {
		t.Errorf("a table without a limit: %v", most)
	}
}

func TestPagesAreUpdated(t *testing.T) {
	dir := t.TempDir()
	page, kept := filepath.Join(dir, "page.md"), filepath.Join(dir, "results")
	const old = "<!-- rest q -->\nold\n"
	if err := errors.Join(os.Mkdir(kept, 0o777), os.WriteFile(filepath.Join(kept, "p.txt"), []byte(measured), 0o666),
		os.WriteFile(page, []byte("<!-- rest p -->\n<!-- end -->\n"+old+end(old)), 0o666)); err != nil {
		t.Fatal(err)
	}
	var notes strings.Builder
	if err := run(kept, []string{page}, &notes); err != nil || notes.String() != "publish: not measured, so that what the pages say of it stays: q\n" {
		t.Errorf("%v, %s", err, &notes)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "| r    | 1 |") || !strings.Contains(string(text), "<!-- rest q -->\nold\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := run(dir, []string{page}, &notes); err == nil {
		t.Error("no results, and no error")
	}
}

// A number that is edited by hand is an error that names its writer; measuring again corrects it.
func TestEditsByHandAreErrors(t *testing.T) {
	all := results{"p": parse(measured)}
	page, errs := fill("<!-- rest p -->\n<!-- end -->\n<!-- text p -->\n<!-- end -->\n", all, all)
	if errs = append(errs, edited(page)...); errs != nil {
		t.Fatal(errs)
	}
	for _, change := range [][2]string{{"2.50x", "9.50x"}, {"peers: 1", "peers: 2"}, {"rest p", "rest q"}, {"<!-- end ", "<!-- end -->\n<!-- end "}} {
		bad := strings.Replace(page, change[0], change[1], 1)
		if errs := edited(bad); len(errs) != 1 || !strings.Contains(errs[0].Error(), "bench/run docs") {
			t.Errorf("%q: %v", change, errs)
		}
		file := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(file, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := run("", []string{file}, io.Discard); err == nil {
			t.Errorf("%q is published", change)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != bad {
			t.Errorf("%q: %v\n%s", change, err, got)
		}
	}
	if again, errs := fill(strings.Replace(page, "2.50x", "9.50x", 1), all, all); errs != nil || again != page {
		t.Errorf("%v\n%s", errs, again)
	}
}

// The committed pages are as publish left them.
func TestPagesHaveTheirFigures(t *testing.T) {
	texts, known := make(map[string]string), make(results)
	for _, name := range []string{"docs/benchmarks.md", "README.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(page)
		maps.Copy(known, pageTables(texts[name]))
	}
	for name, text := range texts {
		for _, err := range edited(text) {
			t.Errorf("%s: %v", name, err)
		}
		if got, errs := fill(text, nil, known); errs != nil || got != text {
			t.Errorf("%s: aims, summary or ratios are not what the tables say (%v); write them by bench/run pages", name, errs)
		}
	}
	charts, err := known.charts()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "../../docs", "*.svg", charts)
	tables, err := known.csv()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "../results", "*.csv", tables)
	for name := range charts {
		if text := texts["docs/benchmarks.md"] + texts["README.md"]; !strings.Contains(text, name+")") {
			t.Errorf("no page shows %s", name)
		}
	}
	for _, p := range panels { // nobody's row is left out of the README's chart
		table, err := known.table("peers", p.head)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range table.cells[1:] {
			if row[0] != inGo && !strings.Contains(charts["speed.svg"], ">"+row[0]+"<") {
				t.Errorf("the README's chart has no bar of %s", row[0])
			}
		}
	}
}

// same reports the files of a folder that match a pattern and are not as they are written.
func same(t *testing.T, folder, pattern string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != text {
			t.Errorf("%s/%s is not made from the tables (%v); write it by bench/run pages", folder, name, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if want[filepath.Base(path)] == "" {
			t.Errorf("%s belongs to no table", path)
		}
	}
}

// A chart has the best row first, its longest bar fills the width, and a missing number is an error.
func TestCharts(t *testing.T) {
	all := results{"p": parse("| work | set | us | n |\n| -- | -- | -- | -- |\n| penstock <a> | x | 100 | 4 |\n| b | x | 50 | 1.2e+03 |\n| c | y | 900 | n/a |\n")}
	got, err := all.draw(drawing{"f.svg", "t", "p", "work", "us", "x", true})
	if err != nil || strings.Index(got, ">b<") > strings.Index(got, "penstock &lt;a&gt;") || !strings.Contains(got, `class="p" x="0" y="88" width="384"`) || strings.Contains(got, "900") {
		t.Errorf("%v\n%s", err, got)
	}
	if got, err = all.draw(drawing{"f.svg", "t", "p", "work", "n", "x", false}); err != nil || !strings.Contains(got, ">1,200<") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, d := range []drawing{{column: "n"}, {column: "m"}, {head: "other"}, {program: "q"}} {
		d.program, d.head = cmp.Or(d.program, "p"), cmp.Or(d.head, "work")
		if _, err := all.draw(d); err == nil {
			t.Errorf("%+v is drawn", d)
		}
	}
}

// Tables are written in place of those of another time; a file that is not a table stays.
func TestTablesAreWritten(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"old.csv", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	all := results{"p": parse("| 1,000 a, b | n |\n| --- | --: |\n| x, y | 1 |\n")}
	if err := all.write(dir); err != nil {
		t.Fatal(err)
	}
	list, _ := filepath.Glob(filepath.Join(dir, "*"))
	text, err := os.ReadFile(filepath.Join(dir, "p-1000-a-b.csv"))
	if len(list) != 2 || err != nil || string(text) != "\"1,000 a, b\",n\n\"x, y\",1\n" {
		t.Errorf("%q, %v, %s", list, err, text)
	}
	all["p"].tables = append(all["p"].tables, all["p"].tables...)
	if err := all.write(dir); err == nil {
		t.Error("two tables in one file")
	}
}
