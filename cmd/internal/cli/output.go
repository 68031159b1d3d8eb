package cli

import (
	"encoding/json"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
)

// JSONFlag adds the flag --json.
func JSONFlag(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "json", false, "print JSON")
}

// Print writes v as indented JSON, or calls text.
func Print(w io.Writer, asJSON bool, v any, text func(io.Writer) error) error {
	if !asJSON {
		return text(w)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// OutputName returns, for Usage, the problem of the name given to -o: an ending other than those listed. No ending is valid, too.
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
