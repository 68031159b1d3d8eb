package cli

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal that understands cursor movements.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// width returns how wide text for w may be.
func width(w io.Writer) int {
	const usual, widest = 100, 120
	if n := TerminalWidth(w); n > 40 {
		return min(n, widest)
	}
	return usual
}

// Printable returns text for a terminal: control characters other than line breaks, which
// names of files may hold and which could steer the terminal, are spelled out.
func Printable(text string) string {
	odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if strings.IndexFunc(text, odd) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if odd(r) {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
