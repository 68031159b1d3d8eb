package cli

import (
	"bytes"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text        string
		width, hang int
		want        string
	}{
		{"one two three four\nfive", 9, 0, "one two\nthree\nfour\nfive"},
		{"  one two three\n", 9, 2, "  one two\n    three\n"},
		{"unbreakable words\n", 5, 1, "unbreakable\n words\n"},
		{"ääää öööö", 9, 0, "ääää öööö"},
		{"as it is, however long", 0, 4, "as it is, however long"},
		{"", 10, 0, ""},
		{"\n\n", 10, 0, "\n\n"},
	} {
		if got := Wrap(c.text, c.width, c.hang); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestReflow(t *testing.T) {
	const text = "A paragraph of several lines, all of them long enough\nto be joined to the one that follows them in the text.\n\nList:\n  indented, which stays where it is\n  and so does this\nExit codes."
	want := "A paragraph of several lines, all of\nthem long enough to be joined to the one\nthat follows them in the text.\n\nList:\n  indented, which stays where it is\n  and so does this\nExit codes."
	if got := reflow(text, 40); got != want {
		t.Errorf("%s", got)
	}
	if got := reflow(text, 100); got != text {
		t.Errorf("%s", got)
	}
}

func TestOnlyTerminalsHaveAWidth(t *testing.T) {
	if n := TerminalWidth(&bytes.Buffer{}); n != 0 {
		t.Errorf("a buffer is %d columns wide", n)
	}
}
