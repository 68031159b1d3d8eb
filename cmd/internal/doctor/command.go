// Package doctor has the command doctor, which prints what the machine has that penstock can use,
// which of these parts are used, and how to get the missing parts. examine makes a list of
// findings, a few facts each from /proc, from the packages that were built in, and from Python on
// the PATH. A missing part is a finding with advice and never an error: penstock works without each
// of them.
package doctor

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const long = `Print what this machine has that penstock can use: CPU, memory, limits, shared memory,
huge pages, CUDA; which decoder, HDF5 writer and deflate this build has; and how to get what is
missing. It changes nothing. The exit code is 0 even if something is missing: penstock works without
it.`

// Command returns the command doctor.
func Command() *cobra.Command {
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
			return cli.Print(cmd, answer, func(w io.Writer) error { return printText(w, list) })
		},
	})
	cli.JSONFlag(cmd)
	return cmd
}

// printText prints a finding a line, with the advice below it.
func printText(w io.Writer, list []finding) error {
	var t cli.Table
	for _, f := range list {
		t.Add(f.Name, f.Found)
		if f.Advice != "" {
			t.Add("", "-> "+f.Advice)
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}
