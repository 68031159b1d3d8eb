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

| rest | n |
| ---- | - |
| r    | 1 |
`

func TestPlacesAreFilled(t *testing.T) {
	all := results{"p": parse(measured)}
	page := "top\n<!-- table p: work -->\nold\n<!-- end -->\nmiddle\n<!-- rest p -->\n<!-- end -->\n<!-- text p -->\n<!-- end -->\nend\n"
	got, err := fill(page, all)
	if err != nil {
		t.Fatal(err)
	}
	want := "top\n<!-- table p: work -->\n\n| work | set | times |\n| ---- | --- | ----- |\n| a    | x   | 3.00 [2.00..4.00] |\n| a    | y   | 2.50x |\n| b    | x   | 1,200 |\n\n<!-- end -->\n" +
		"middle\n<!-- rest p -->\n\n| rest | n |\n| ---- | - |\n| r    | 1 |\n\n<!-- end -->\n<!-- text p -->\n\n```text\na machine\npeers: 1\n\nmore\n```\n\n<!-- end -->\nend\n"
	if got != want {
		t.Errorf("%s", got)
	}
	if again, err := fill(got, all); err != nil || again != got {
		t.Errorf("filled again: %v\n%s", err, again)
	}
}

func TestWhatWasNotMeasuredIsSaid(t *testing.T) {
	all := results{"p": parse(measured)}
	for page, want := range map[string]string{
		"<!-- table p: other -->\n<!-- end -->": `p.txt has no table "other"; it has ["work" "rest"]`,
		"<!-- rest q -->\n<!-- end -->":         "there is no q.txt",
		"<!-- ratios -->\n<!-- end -->":         "there is no transforms.txt",
	} {
		if got, err := fill(page, all); err == nil || !strings.Contains(err.Error(), want) || got != page {
			t.Errorf("%s: %v\n%s", page, err, got)
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

// The committed pages have places for what is told of, and are as publish leaves them.
func TestPagesHaveTheirFigures(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := results{"transforms": {}, "loader": {}}
	for _, m := range place.FindAllString(string(page), -1) {
		first, _, _ := strings.Cut(m, "\n")
		for program, r := range all {
			if strings.HasPrefix(first, "<!-- table "+program+": ") || first == "<!-- rest "+program+" -->" {
				r.tables = append(r.tables, parse(m).tables...)
			}
		}
	}
	for _, of := range []func() ([]string, error){all.ratios, all.targets} {
		lines, err := of()
		if err != nil {
			t.Errorf("docs/benchmarks.md: %v", err)
		}
		if len(lines) < 8 {
			t.Errorf("%q", lines)
		}
	}
}
