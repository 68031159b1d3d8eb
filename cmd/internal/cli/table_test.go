package cli

import (
	"testing"
)

func TestTableAligns(t *testing.T) {
	tab := Table{Indent: 2, Align: "lr"}
	tab.Add("name", "7", "x")
	tab.Add("é", "1234")
	tab.Add("what ends a row flush left is not cut off and widens nothing")
	want := "  name     7  x\n  é     1234\n  what ends a row flush left is not cut off and widens nothing\n"
	if got := tab.String(); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestBarOfAShare(t *testing.T) {
	for _, c := range []struct {
		value, largest int64
		want           string
	}{
		{0, 8, ""}, {8, 8, "████"}, {4, 8, "██"}, {1, 1000, "▏"}, {5, 8, "██▌"}, {3, 0, ""}, {-1, 4, ""},
	} {
		if got := Bar(c.value, c.largest, 4); got != c.want {
			t.Errorf("bar(%d, %d) = %q, want %q", c.value, c.largest, got, c.want)
		}
	}
}

func TestShorten(t *testing.T) {
	if got := Shorten("äöü", 3); got != "äöü" {
		t.Errorf("got %q", got)
	}
	if got := Shorten("äöüß", 3); got != "äö…" {
		t.Errorf("got %q", got)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		f    func(float64) string
		in   float64
		want string
	}{
		{Decimal, 0.485, "0.4850"}, {Decimal, -2.25, "-2.2500"}, {Decimal, 0, "0.0000"},
		{Decimal, 0.00001, "1e-05"}, {Decimal, 3e9, "3e+09"},
		{Number, 255, "255"}, {Number, -3, "-3"}, {Number, 0.5, "0.5000"}, {Number, 1e18, "1e+18"},
	} {
		if got := c.f(c.in); got != c.want {
			t.Errorf("%v: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestNarrowTablesComeInParts(t *testing.T) {
	table := &Table{Indent: 2, Align: "lrrr", Rows: [][]string{{"", "aaaa", "bbbb", "cc"}, {"row", "1", "22", "333"}, {"not", "n/a"}}}
	for width, want := range map[int]int{0: 1, 100: 1, 18: 2, 12: 3, 1: 3} {
		parts := table.Parts(width)
		if len(parts) != want {
			t.Errorf("%d columns: %d parts %q", width, len(parts), parts)
		}
		for _, part := range parts {
			if part.Rows[1][0] != "row" || len(part.Rows) != 3 {
				t.Errorf("%d columns: %q", width, part)
			}
		}
	}
	if got, want := table.Parts(18)[1].String(), "        cc\n  row  333\n  not\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTableAsMarkdown(t *testing.T) {
	table := &Table{Align: "lr", Rows: [][]string{{"", "total"}, {"a|b", "1"}, {"none"}}}
	want := "| rows | total |\n| --- | ---: |\n| a\\|b | 1 |\n| none |  |\n"
	if got := table.Markdown("rows"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWideCellsMoveOnlyTheirRow(t *testing.T) {
	table := Table{Wide: 6}
	table.Add("a", "uint8", "maps")
	table.Add("b", "compound{x, y}", "is read")
	table.Add("c", "f4", "maps")
	const want = "a  uint8  maps\nb  compound{x, y}  is read\nc  f4     maps\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%s, not\n%s", got, want)
	}
}
