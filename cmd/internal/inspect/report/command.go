package report

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

const long = `Write an HTML report: checks, fields, histograms, labels, samples (random, by class,
darkest, brightest, near-duplicates), splits, skipped samples and the recipe. The file is
self-contained: it fetches nothing and runs no script. The same data and flags give the same bytes.`

const examples = `  inspect report -o report.html out/flat
  inspect report -o train.html --split train out/photos.h5
  inspect report -o - --field train/x,train/y other.h5 > report.html`

// flagValues holds the flags of report.
type flagValues struct {
	Options
	out string
}

// Command returns the command inspect report.
func Command() *cobra.Command {
	var f flagValues
	cmd := cli.Command(&cobra.Command{
		Use: "report [flags] -o FILE.html DATASET", Short: "Write an HTML report about the data", Long: long,
		Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			return cli.Usage(append(datasetarg.One(cmd, args), f.problems(cmd)...)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	})
	f.Register(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "HTML `FILE` to write; - is stdout")
	flags.IntVar(&f.Scan, "scan", 100_000, "search at most `N` records for extremes and near-duplicates")
	flags.Uint64Var(&f.Seed, "seed", 0, "`SEED` of the random samples")
	flags.IntVar(&f.Workers, "workers", 0, "`N` reading goroutines (default one per core)")
	flags.Bool("json", false, "also print checks and near-duplicates as JSON")
	cli.QuietFlag(cmd, "print errors only")
	return cmd
}

// problems returns the problems of the flags, a sentence each.
func (f *flagValues) problems(cmd *cobra.Command) (list []string) {
	if f.out == "" {
		list = append(list, "-o FILE.html says where to write the page; -o - is stdout")
	}
	list = append(list, cli.OutputName(f.out, ".html", ".htm")...)
	if cli.AsJSON(cmd) && f.out == "-" {
		list = append(list, "--json and -o -: both write to stdout; give a FILE.html")
	}
	if f.Scan < 1 {
		list = append(list, "--scan must be at least 1")
	}
	if f.Workers < 0 {
		list = append(list, "--workers cannot be negative")
	}
	return list
}

// run makes the report and writes the page.
func (f *flagValues) run(cmd *cobra.Command, path string) error {
	if err := cli.CheckOutput(f.out); err != nil {
		return err
	}
	bar := cli.NewStage(cmd, "inspect", "read", "values of records")
	f.Begin, f.Progress = bar.Begin, bar.Add
	r, err := Make(cmd.Context(), path, f.Options)
	bar.End()
	if err != nil {
		return err
	}
	if cli.AsJSON(cmd) {
		if err := cli.WriteFile(f.out, r.HTML); err != nil {
			return err
		}
		return cli.PrintJSON(cmd.OutOrStdout(), r.findings())
	}
	if f.out == "-" {
		return r.HTML(cmd.OutOrStdout())
	}
	if err := cli.WriteFile(f.out, r.HTML); err != nil {
		return err
	}
	if cli.Quiet(cmd) {
		return nil
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %s, %d of %s good\n", shell.Line(f.out),
		units.Counted(r.Stats.Records, "record"), shell.Line(path), len(r.Checks)-r.Failed(),
		units.Counted(int64(len(r.Checks)), "check"))
	return err
}
