// Package doctor is the command doctor: what a machine has that penstock can use, what of it is
// used, and how to get what is missing.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const long = `Print what this machine has that penstock can use: processor, memory, limits, shared memory, huge
pages, CUDA; which decoder, HDF5 writer and deflate this build has; and for what is missing, how to
get it. It changes nothing. The exit code is 0 whatever is missing: penstock works without.`

// Command returns the command.
func Command() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor [flags]", Short: "Print what this machine has, and what is missing", Long: long,
		Example: "  penstock doctor\n  penstock doctor --json", DisableFlagsInUseLine: true,
		Args: cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("doctor takes no arguments")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := examine()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return printText(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printJSON(w io.Writer, list []finding) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Findings []finding `json:"findings"`
	}{list})
}

func printText(w io.Writer, list []finding) error {
	width := 0
	for _, f := range list {
		width = max(width, len(f.Name))
	}
	for _, f := range list {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, f.Name, f.Found); err != nil {
			return err
		}
		if f.Advice != "" {
			if _, err := fmt.Fprintf(w, "%-*s  -> %s\n", width, "", f.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}
