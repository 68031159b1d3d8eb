package cli

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/internal/sys/shell"
)

// JSONFlag adds the flag --json.
func JSONFlag(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "json", false, "print JSON")
}

// Print writes v as indented JSON, or calls text.
func Print(w io.Writer, asJSON bool, v any, text func(io.Writer) error) error {
	if !asJSON {
		return Screen(w, text)
	}
	return PrintJSON(w, v)
}

// PrintJSON writes v as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Screen writes to w what text does, without characters that a terminal obeys. On a terminal, lines that are too long
// are broken as Fit does.
func Screen(w io.Writer, text func(io.Writer) error) error {
	var b strings.Builder
	if err := text(&b); err != nil {
		return err
	}
	lines := shell.Lines(b.String())
	if width := TerminalWidth(w); width > 0 {
		lines = Fit(lines, width)
	}
	_, err := io.WriteString(w, lines)
	return err
}

// OutputName returns, for Usage, the problem of the name given to -o: an ending other than those listed. No ending is
// valid, too.
func OutputName(out string, endings ...string) []string {
	if filepath.Ext(out) == "" {
		return nil
	}
	return EndsIn("-o", out, endings...)
}

// CheckOutput returns the error that writing to out would end with; "-" is stdout.
func CheckOutput(out string) error {
	if out == "-" {
		return nil
	}
	return CheckWrite(out)
}
