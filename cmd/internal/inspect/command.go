package inspect

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/cmd/internal/inspect/diff"

	"github.com/penstock/penstock/cmd/internal/inspect/layout"
	"github.com/penstock/penstock/cmd/internal/inspect/preview"
	"github.com/penstock/penstock/cmd/internal/inspect/report"
	"github.com/penstock/penstock/cmd/internal/inspect/show"
	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/cmd/internal/inspect/summary"
	"github.com/penstock/penstock/cmd/internal/inspect/verify"

	"github.com/penstock/penstock/internal/version"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/remote"
)

const long = `Show fields, classes, statistics and the recipe of a dataset, and how to open it. For raw
samples, such as a folder of images, inspect shows the fields that they would have; for an HDF5 file
that preprocess did not write, how its data are stored, what reading a record costs, and the command
that makes reading fast. Times are estimates for one core and a file in memory.

Exit codes: 0 done, 1 failed or corrupt, 2 wrong usage, 130 interrupted.`

const examples = `  inspect out/flat                             a summary
  inspect out/flat --json | jq .records        the same for programs
  inspect half.view.json                       the records and datasets of a view
  inspect photos                               raw samples: the fields that they would have`

// Command returns the command inspect, for cli.Main.
func Command() *cobra.Command {
	var version bool
	var classes int
	var records string
	var align unit.Align
	cmd := cli.Command(&cobra.Command{
		Use: "inspect [flags] DATASET", Short: "Show the contents of a dataset", Long: long, Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return nil
			}
			problems := datasetarg.One(cmd, args)
			if classes < 0 {
				problems = append(problems, "--classes cannot be negative")
			}
			declared, err := unit.WithAlign(records, align)
			if err != nil {
				problems = append(problems, err.Error())
			} else if len(args) == 1 {
				args[0] = source.WithRecords(args[0], declared)
			}
			return cli.Usage(problems...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return printVersion(cmd.OutOrStdout())
			}
			// A view, raw samples, a URL and a dataset have different summaries. A URL that has a
			// dataset was replaced by a local path in PersistentPreRunE, so a URL here has raw
			// samples.
			if views.Is(args[0]) {
				v, err := summary.DescribeView(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return cli.Print(cmd, v, v.Render)
			}
			if raw.Is(args[0]) || remote.IsURL(args[0]) {
				s, err := summary.DescribeRaw(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return cli.Print(cmd, s, s.Render)
			}
			s, err := summary.Describe(args[0])
			if err != nil {
				return err
			}
			return cli.Print(cmd, s, func(w io.Writer) error { return s.Render(w, classes) })
		},
	})
	cli.JSONFlag(cmd)
	cmd.Flags().IntVar(&classes, "classes", 20, "list at most `N` classes; 0 lists all")
	cmd.Flags().StringVar(&records, "records", "", "where the records are, as of preprocess: `GROUPS` such as data/* or data/*[:]")
	cmd.Flags().Var(&align, "align", "rows of arrays of several lengths, or genes of several files, as of preprocess")
	cmd.Flags().BoolVar(&version, "version", false, "print the version and exit")
	cmd.SuggestionsMinimumDistance = 2
	var cache datasetarg.Cache
	cache.URLFlags(cmd.PersistentFlags())
	// Runs before inspect and each of its subcommands, which so need to know nothing of URLs: a
	// dataset of a bucket is fetched, and args then name the local copy.
	cmd.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := cli.Usage(cache.Settle(args)...); err != nil {
			return err
		}
		err := cache.Local(cmd.Context(), args, cli.ProgressOf(cmd, "inspect").Note)
		if cmd.HasSubCommands() && datasetarg.MayBeRaw(err) {
			return nil // only inspect itself describes raw samples, not its subcommands
		}
		return err
	}
	// Until here the cache must not evict the local copies.
	cmd.PersistentPostRun = func(*cobra.Command, []string) { cache.Close() }
	cmd.AddCommand(show.Command(), verify.Command(), layout.Command(), preview.Command(), diff.Command(), stats.Command(),
		report.Command(), viewCommand(), filterCommand(), joinCommand(), stateCommand())
	return cmd
}

// printVersion prints the version of the program and of Go, and the system it was built for.
func printVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "inspect %s, %s %s/%s\n", version.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
