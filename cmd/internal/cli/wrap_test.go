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

func TestFit(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"as it is, however long", 0, "as it is, however long"},
		{"ds is whole: 300 records match their checksums\n", 30, "ds is whole: 300 records match\n  their checksums\n"},
		{"  name   one two three four five six seven\n", 30, "  name   one two three four\n         five six seven\n"},
		{"         the rest of a column that is long\n", 30, "         the rest of a column\n           that is long\n"},
		{`  x  = np.load("my data/x.npy", mmap_mode="r")`, 32, "  x  = np.load(\"my data/x.npy\",\n     mmap_mode=\"r\")"},
		{`  x  = np.load("a/path/that/is/longer/than/a/line.npy", mmap_mode="r")`, 32, "  x  = np.load(\"a/path/that/is/longer/than/a/line.npy\",\n     mmap_mode=\"r\")"},
		{"  tool demo   # the first minute: images, a network", 34, "  tool demo   # the first minute:\n              # images, a network"},
		{"  tool demo   # the first minute: images, a network, and a page", 34, "  tool demo   # the first minute:\n              # images, a network,\n              # and a page"},
		{"  images  [220 219 219]  min 0, max 255", 30, "  images  [220 219 219]\n          min 0, max 255"},
		{"unbreakable/but/very/long", 10, "unbreakable/but/very/long"},
		{"a column far to the right      words of it", 36, "a column far to the right\n  words of it"},
	} {
		if got := Fit(c.text, c.width); got != c.want {
			t.Errorf("%q at %d:\n%s\nwant\n%s", c.text, c.width, got, c.want)
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
