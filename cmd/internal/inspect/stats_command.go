package inspect

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const statsLong = `Compute statistics from every value: minimum, maximum, mean and deviation per field, channel
and class, histograms, records per class, and lengths of variable-length records. Differences
from the manifest's statistics are reported.

--manifest prints the statistics of the manifest immediately, without histograms.`

const statsExamples = `  inspect stats out/flat
  inspect stats --field images --split train out/photos.h5
  inspect stats --json out/flat | jq '.fields[0].channels[].mean'
  inspect stats --field train/x,train/y other.h5`

func statsCommand() *cobra.Command {
	var asJSON, quiet bool
	var opts StatsOptions
	var text TextOptions
	cmd := &cobra.Command{
		Use: "stats [flags] DATASET", Short: "Compute statistics and histograms", Long: statsLong, Example: statsExamples,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			problems := append(oneDataset(cmd, args), text.problems()...)
			if opts.Workers < 0 {
				problems = append(problems, "--workers cannot be negative")
			}
			if opts.Manifest && opts.Split != "" {
				problems = append(problems, "--manifest has figures of all records; leave --split out")
			}
			return cli.Usage(problems...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			bar := newWatch(cmd, "read", "values of records", quiet)
			opts.Begin, opts.Progress = bar.begin, bar.add
			s, err := Survey(cmd.Context(), args[0], opts)
			bar.end()
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), asJSON, s, func(w io.Writer) error { return s.Render(w, text) })
		},
	}
	opts.register(cmd)
	flagJSON(cmd, &asJSON)
	cmd.Flags().BoolVar(&opts.Manifest, "manifest", false, "print the statistics that the manifest holds")
	cmd.Flags().IntVar(&text.Classes, "classes", 20, "list at most `N` classes; 0 lists all")
	cmd.Flags().IntVar(&opts.Workers, "workers", 0, "`N` reading goroutines (default one per core)")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "print no progress")
	return cmd
}
