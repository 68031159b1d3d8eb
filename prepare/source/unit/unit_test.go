package unit

import (
	"fmt"
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

type namedUnit struct {
	Unit
	name string
}

func (u namedUnit) Name() string { return u.name }

// TestLists divides five units of two records by lists of units, as robomimic's files have them.
func TestLists(t *testing.T) {
	c := &Columns{starts: []int64{0}}
	for i := range 5 {
		c.units, c.starts = append(c.units, namedUnit{name: fmt.Sprintf("data/demo_%d", i)}), append(c.starts, int64(2*i+2))
	}
	l := c.Lists([]List{
		{"mask/20_percent_train", []string{"demo_0"}}, {"mask/all", []string{"demo_0", "demo_1", "demo_2", "demo_3", "demo_4"}},
		{"mask/good", []string{"demo_4"}}, {"mask/notes", []string{"a"}}, {"mask/odd", []string{"demo_1", "demo_9"}},
		{"mask/none", nil}, {"mask/valid", []string{"demo_2"}}, {"mask/train", []string{"data/demo_3", "demo_0", "/data/demo_0"}},
	})
	if got := fmt.Sprint(l.Broken); got != "[the list mask/odd names demo_9, which the file does not have the list mask/none is empty: it names nothing that has records]" {
		t.Error(got)
	}
	for names, want := range map[string]string{
		"": "[{mask/good [[8 10]]} {mask/train [[0 2] [6 8]]} {mask/valid [[4 6]]} {others [[2 4]]}] [not stored as splits, as a " +
			"record is in one split: mask/20_percent_train, mask/all; to store other lists than mask/good, mask/train, mask/valid: " +
			"--split mask/20_percent_train] <nil>",
		"mask/all":             "[{mask/all [[0 2] [2 4] [4 6] [6 8] [8 10]]}] [] <nil>",
		"mask/good mask/valid": "[{mask/good [[8 10]]} {mask/valid [[4 6]]} {others [[0 4] [6 8]]}] [] <nil>",
		"mask/train mask/all":  "[] [] --split: mask/train and mask/all have units in common, and a record is in one split; name one of them",
		"mask/odd":             `[] [] split "mask/odd": the list mask/odd names demo_9, which the file does not have; correct the list, or read all records`,
		"mask/notes": "[] [] --split mask/notes: the file has no such list of units; it has mask/20_percent_train, mask/all, mask/good, " +
			"mask/valid, mask/train",
	} {
		splits, hints, err := l.Several(strings.Fields(names))
		if got := fmt.Sprint(splits, hints, err); got != want {
			t.Errorf("%q: %s", names, got)
		}
	}
}
