package inspect

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestTableAligns(t *testing.T) {
	tab := table{indent: 2, align: "lr"}
	tab.add("name", "7", "x")
	tab.add("é", "1234")
	tab.add("what ends a row flush left is not cut off and widens nothing")
	want := "  name     7  x\n  é     1234\n  what ends a row flush left is not cut off and widens nothing\n"
	if got := tab.String(); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		value, largest int64
		want           string
	}{
		{0, 8, ""}, {8, 8, "████"}, {4, 8, "██"}, {1, 1000, "▏"}, {5, 8, "██▌"}, {3, 0, ""}, {-1, 4, ""},
	} {
		if got := bar(c.value, c.largest, 4); got != c.want {
			t.Errorf("bar(%d, %d) = %q, want %q", c.value, c.largest, got, c.want)
		}
	}
}

func TestPrintableKeepsTheTerminalSafe(t *testing.T) {
	for in, want := range map[string]string{
		"käse 猫": "käse 猫", "a\x1b[2Jb": `a\x1b[2Jb`, "two\nlines": `two\nlines`, "bad\xff": `bad\xff`, "": "",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	if got := shorten("äöü", 3); got != "äöü" {
		t.Errorf("got %q", got)
	}
	if got := shorten("äöüß", 3); got != "äö…" {
		t.Errorf("got %q", got)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		f    func(float64) string
		in   float64
		want string
	}{
		{decimal, 0.485, "0.4850"}, {decimal, -2.25, "-2.2500"}, {decimal, 0, "0.0000"},
		{decimal, 0.00001, "1e-05"}, {decimal, 3e9, "3e+09"},
		{limit, 255, "255"}, {limit, -3, "-3"}, {limit, 0.5, "0.5000"}, {limit, 1e18, "1e+18"},
	} {
		if got := c.f(c.in); got != c.want {
			t.Errorf("%v: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestIdentifier(t *testing.T) {
	for in, want := range map[string]string{"images": "images", "train/x-1": "train_x_1", "1st": "_1st", "": "_", "ü": "_"} {
		if got := identifier(in); got != want {
			t.Errorf("identifier(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestStepsKeepTheOrderOfTheRecipe(t *testing.T) {
	recipe := `[{"op":"Resize","size":[256],"fit":"shorter","fill":null,"antialias":true},
		{"op":"Normalize","mean":[0.5,0.25],"std":[1],"strict":false}]`
	var got []string
	for _, s := range steps(json.RawMessage(recipe)) {
		got = append(got, s.Op+": "+strings.Join(s.Params, ", "))
	}
	want := []string{"Resize: size 256, fit shorter, antialias", "Normalize: mean (0.5, 0.25), std 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStepsOfSomethingElse(t *testing.T) {
	for _, recipe := range []string{"", "null", "{}", "[1]x", `["a"]`, "[[1]]"} {
		for _, s := range steps(json.RawMessage(recipe)) {
			if s.Op != "" {
				t.Errorf("%q: got %+v", recipe, s)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap([]string{"one", "two", "three", "a very long item"}, 10)
	if want := []string{"one, two,", "three,", "a very long item"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := wrap(nil, 10); got != nil {
		t.Errorf("got %q of nothing", got)
	}
}
