package cli

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/internal/sys/shell"
)

// JSONFlag adds the flag --json, which Print obeys.
func JSONFlag(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print JSON") }

// QuietFlag adds the flags --quiet and -q. help says what they suppress.
func QuietFlag(cmd *cobra.Command, help string) { cmd.Flags().BoolP("quiet", "q", false, help) }

// AsJSON reports whether --json is given.
func AsJSON(cmd *cobra.Command) bool { return given(cmd, "json") }

// Quiet reports whether --quiet is given.
func Quiet(cmd *cobra.Command) bool { return given(cmd, "quiet") }

// ProgressOf returns the Progress of a command, as --quiet and --progress ask for. name is printed
// before each line.
func ProgressOf(cmd *cobra.Command, name string) *Progress {
	if format, _ := cmd.Flags().GetString("progress"); format == "json" {
		return NewJSONProgress(cmd.ErrOrStderr())
	}
	return NewProgress(cmd.ErrOrStderr(), name, Quiet(cmd))
}

// given returns the value of a bool flag, false for a command that does not have the flag.
func given(cmd *cobra.Command, flag string) bool {
	is, _ := cmd.Flags().GetBool(flag)
	return is
}

// Print writes a result to standard output: with --json v as indented JSON, otherwise the text.
func Print(cmd *cobra.Command, v any, text func(io.Writer) error) error {
	if !AsJSON(cmd) {
		return Screen(cmd.OutOrStdout(), text)
	}
	return PrintJSON(cmd.OutOrStdout(), v)
}

// PrintJSON writes v as indented JSON. Characters such as < and & stay readable, since the output
// is not part of an HTML page.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Screen writes the output of text to w. Control characters are escaped, so that a name from a file
// cannot move the cursor or change the terminal. On a terminal, lines that are too long are broken
// by Fit.
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

// OutputName returns the problem, for Usage, of the name given to -o if its ending is not in the
// list. A name without an ending is valid, too.
func OutputName(out string, endings ...string) []string {
	if filepath.Ext(out) == "" {
		return nil
	}
	return EndsIn("-o", out, endings...)
}

// CheckOutput returns the error that writing to out would end with. "-" is standard output, which
// is not checked.
func CheckOutput(out string) error {
	if out == "-" {
		return nil
	}
	return CheckWrite(out)
}
