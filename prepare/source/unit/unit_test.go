package unit

import (
	"slices"
	"strings"
	"testing"
)

func TestOrder(t *testing.T) {
	want := []string{"", "01", "1", "2", "a", "a1b2", "a1b10", "a2", "a10", "a99999999999999999999", "a100000000000000000000", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	if slices.SortFunc(got, Compare); !slices.Equal(got, want) {
		t.Errorf("sorted: %q", got)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"data/*": "data/*", "/data/*[:]": "data/*[:]", "*[:start]": "*[:start]", "[ab]*/x?[:end]": "[ab]*/x?[:end]",
		"": "!names no unit", "[:]": "!names no unit", "a//b": "!a name is empty", "a/[": "!not a pattern",
	} {
		r, err := Parse(text)
		problem, bad := strings.CutPrefix(want, "!")
		switch {
		case bad && (err == nil || !strings.Contains(err.Error(), problem)):
			t.Errorf("%q: %v", text, err)
		case !bad && (err != nil || r.String() != want):
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	if got, err := WithAlign("a/*[:]", AlignEnd); got != "a/*[:end]" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"a/*", ""} {
		if _, err := WithAlign(text, AlignStart); err == nil {
			t.Errorf("%q was aligned", text)
		}
	}
}
