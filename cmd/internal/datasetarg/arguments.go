package datasetarg

import (
	"fmt"

	"github.com/spf13/cobra"
)

// One returns the problems of arguments that have to be exactly one DATASET. For a command with
// subcommands, several arguments may be a mistyped subcommand, so the message suggests one.
func One(cmd *cobra.Command, args []string) []string {
	switch {
	case len(args) == 1 && args[0] != "":
		return nil
	case len(args) <= 1:
		return []string{"no DATASET given"}
	case cmd.HasAvailableSubCommands():
		return []string{fmt.Sprintf("%q is not a command, and there is more than one DATASET", args[0]) + meant(cmd, args[0])}
	}
	return []string{fmt.Sprintf("one DATASET at a time, not %d: %q", len(args), args)}
}

// meant returns a suggestion of the subcommand that word resembles; "" if it resembles none.
func meant(cmd *cobra.Command, word string) string {
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}
