package cli

import (
	"io"
	"os"

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
