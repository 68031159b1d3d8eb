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
func JSONFlag(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print JSON") }

// QuietFlag adds the flags --quiet and -q, with what they leave out.
func QuietFlag(cmd *cobra.Command, help string) { cmd.Flags().BoolP("quiet", "q", false, help) }

// AsJSON reports whether --json is given.
func AsJSON(cmd *cobra.Command) bool { return given(cmd, "json") }

// Quiet reports whether --quiet is given.
func Quiet(cmd *cobra.Command) bool { return given(cmd, "quiet") }

// ProgressOf returns the progress of a command, or of a program that it is a part of, as --quiet and --progress say.
func ProgressOf(cmd *cobra.Command, name string) *Progress {
	if format, _ := cmd.Flags().GetString("progress"); format == "json" {
		return NewJSONProgress(cmd.ErrOrStderr())
	}
	return NewProgress(cmd.ErrOrStderr(), name, Quiet(cmd))
}

// given is false for a command without the flag.
func given(cmd *cobra.Command, flag string) bool {
	is, _ := cmd.Flags().GetBool(flag)
	return is
}

// Print writes v to standard output: as indented JSON with --json, else as text does.
func Print(cmd *cobra.Command, v any, text func(io.Writer) error) error {
	if !AsJSON(cmd) {
		return Screen(cmd.OutOrStdout(), text)
	}
	return PrintJSON(cmd.OutOrStdout(), v)
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
