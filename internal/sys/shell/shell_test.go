package shell_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/internal/sys/shell"
)

// A shell reads each word back as it was, and runs nothing that is in it.
func TestWordsAreRead(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	for _, s := range []string{"", "plain", "a b", "it's", `a'$(touch X)'b`, "`id`", "$HOME", "a;b", "a\\b", "é", "*", "!x", `"`, "~", "#", "&&", "|", "a'$(touch /tmp/x)'"} {
		line := shell.Command("printf %s", s)
		out, err := exec.Command(sh, "-c", line).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q: %s prints %q, %v", s, line, out, err)
		}
	}
	if got := shell.Command("inspect", "--help"); got != "inspect ./--help" {
		t.Errorf("a name that looks like a flag: %s", got)
	}
}

// Unprintable text is in no command, and in one line elsewhere.
func TestUnprintable(t *testing.T) {
	for _, s := range []string{"a'$(touch X)'b\u200b", "a\nb", "\x1b[2J", "a\rb", "\u202e", "\xff", "a\tb", "\u2028"} {
		if got := shell.Command("inspect", s); got != "" {
			t.Errorf("%q: %s", s, got)
		}
		if got := shell.Line(s); strings.ContainsAny(got, "\n\r\x1b\t\u200b\u202e\u2028") || !utf8.ValidString(got) {
			t.Errorf("%q: %q", s, got)
		}
	}
	if got := shell.Line("a b'é"); got != "a b'é" {
		t.Error(got)
	}
}

func TestLineKeepsTheTerminalSafe(t *testing.T) {
	for in, want := range map[string]string{
		"käse 猫": "käse 猫", "a\x1b[2Jb": `a\x1b[2Jb`, "two\nlines": `two\nlines`, "bad\xff": `bad\xff`, "": "",
	} {
		if got := shell.Line(in); got != want {
			t.Errorf("shell.Line(%q) = %q, want %q", in, got, want)
		}
	}
}
