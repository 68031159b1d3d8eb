package main

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
		texts[name] = read(t, "../../"+name)
		maps.Copy(known, pageTables(texts[name]))
	}
	for name, text := range texts {
		for _, err := range edited(text) {
			t.Errorf("%s: %v", name, err)
		}
		if got, errs := fill(text, nil, known); errs != nil || got != text {
			t.Errorf("%s: aims or ratios are not what the tables say (%v); write them by bench/run pages", name, errs)
		}
	}
	charts, err := known.charts()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range charts {
		if read(t, "../../docs/"+name) != text {
			t.Errorf("docs/%s is not made from the tables; write it by bench/run pages", name)
		}
		if text := texts["docs/benchmarks.md"] + texts["README.md"]; !strings.Contains(text, name+")") {
			t.Errorf("no page shows %s", name)
		}
	}
	if found, err := filepath.Glob("../../docs/*.svg"); err != nil || len(found) != len(charts) {
		t.Errorf("%d charts in docs, want %d, %v", len(found), len(charts), err)
	}
	table := filepath.Join(t.TempDir(), "results.csv")
	if err := known.write(table); err != nil || read(t, table) != read(t, "../results.csv") {
		t.Errorf("bench/results.csv is not made from the tables (%v); write it by bench/run pages", err)
	}
	for _, p := range speed { // nobody's row is left out of the README's chart
		table, err := known.table(p.program, p.head)
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

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
