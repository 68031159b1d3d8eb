package stats

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
)

const long = `Compute statistics from every value: minimum, maximum, mean and std per field, channel
and class, histograms, records per class, and lengths of variable-length records; for boxes also
sizes, aspect ratios and the number that reach out of their images. Differences from the manifest's
statistics are reported.`

const examples = `  inspect stats out/flat
  inspect stats --field images --split train out/photos.h5
  inspect stats --json out/flat | jq '.fields[0].channels[].mean'
  inspect stats --field train/x,train/y other.h5`

// Command returns the command inspect stats.
func Command() *cobra.Command {
	var classes int
	var opts Options
	cmd := cli.Command(&cobra.Command{
		Use: "stats [flags] DATASET", Short: "Compute statistics and histograms", Long: long, Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			problems := datasetarg.One(cmd, args)
			if classes < 0 {
				problems = append(problems, "--classes cannot be negative")
			}
			if opts.Workers < 0 {
				problems = append(problems, "--workers cannot be negative")
			}
			return cli.Usage(problems...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			bar := cli.NewStage(cmd, "inspect", "read", "values of records")
			opts.Begin, opts.Progress = bar.Begin, bar.Add
			s, err := Compute(cmd.Context(), args[0], opts)
			bar.End()
			if err != nil {
				return err
			}
			return cli.Print(cmd, s, func(w io.Writer) error {
				return s.Render(w, classes, cli.TerminalWidth(cmd.OutOrStdout()))
			})
		},
	})
	opts.Register(cmd)
	cli.JSONFlag(cmd)
	cmd.Flags().IntVar(&classes, "classes", 20, "list at most `N` classes; 0 lists all")
	cmd.Flags().IntVar(&opts.Workers, "workers", 0, "`N` reading goroutines (default one per core)")
	cli.QuietFlag(cmd, "print no progress")
	return cmd
}
