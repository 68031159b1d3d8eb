package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal that can move its cursor. Editors that run programs in
// a window set TERM to "dumb".
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// width returns the width for help and other running text in w. Lines of more than 120 columns are
// hard to read on any terminal, and below 40 columns wrapping would destroy the layout of the help.
func width(w io.Writer) int {
	const usual, widest = 100, 120
	if n := TerminalWidth(w); n > 40 {
		return min(n, widest)
	}
	return usual
}
