// Package doctor is the command doctor: what a machine has that penstock can use, what of it is
// used, and how to get what is missing.
package doctor

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const long = `Print what this machine has that penstock can use: processor, memory, limits, shared memory, huge
pages, CUDA; which decoder, HDF5 writer and deflate this build has; and for what is missing, how to
get it. It changes nothing. The exit code is 0 whatever is missing: penstock works without.`

// Command returns the command.
func Command() *cobra.Command {
	var asJSON bool
	cmd := cli.Command(&cobra.Command{
		Use: "doctor [flags]", Short: "Print what this machine has, and what is missing", Long: long,
		Example: "  penstock doctor\n  penstock doctor --json",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("doctor takes no arguments")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := examine()
			answer := struct {
				Findings []finding `json:"findings"`
			}{list}
			return cli.Print(cmd.OutOrStdout(), asJSON, answer, func(w io.Writer) error { return printText(w, list) })
		},
	})
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// printText breaks what is longer than a line of the terminal below its column.
func printText(w io.Writer, list []finding) error {
	column := 0
	for _, f := range list {
		column = max(column, len(f.Name)+2)
	}
	room := max(0, cli.TerminalWidth(w)-column)
	var t cli.Table
	for _, f := range list {
		text := cli.Wrap(f.Found, room, 0)
		if f.Advice != "" {
			text += "\n" + cli.Wrap("-> "+f.Advice, room, len("-> "))
		}
		name := f.Name
		for line := range strings.SplitSeq(text, "\n") {
			t.Add(name, line)
			name = ""
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}
