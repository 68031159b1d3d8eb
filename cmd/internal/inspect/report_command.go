package inspect

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const reportLong = `Write an HTML report: checks, fields, histograms, labels, samples (random, by class, darkest,
brightest, near-duplicates), splits, skipped samples and the recipe. The file is complete in
itself, fetches nothing and runs no script. The same data and flags give the same bytes.`

const reportExamples = `  inspect report -o report.html out/flat
  inspect report -o train.html --split train out/photos.h5
  inspect report -o - --field train/x,train/y other.h5 > report.html`

// reportFlags is the command line of report.
type reportFlags struct {
	ReportOptions
	out   string
	quiet bool
}

func reportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use: "report [flags] -o FILE.html DATASET", Short: "Write an HTML report about the data", Long: reportLong, Example: reportExamples,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			return cli.Usage(append(oneDataset(cmd, args), f.problems()...)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "HTML `FILE` to write; - is stdout")
	flags.IntVar(&f.Scan, "scan", 100_000, "search at most `N` records for extremes and near-duplicates")
	flags.Uint64Var(&f.Seed, "seed", 0, "`SEED` of the random samples")
	flags.IntVar(&f.Workers, "workers", 0, "`N` reading goroutines (default one per core)")
	flags.BoolVar(&f.quiet, "quiet", false, "print errors only")
	return cmd
}

func (f *reportFlags) problems() (list []string) {
	if f.out == "" {
		list = append(list, "-o FILE.html says where to write the page; -o - is stdout")
	}
	list = append(list, wrongName(f.out, ".html", ".htm")...)
	if f.Scan < 1 {
		list = append(list, "--scan must be at least 1")
	}
	if f.Workers < 0 {
		list = append(list, "--workers cannot be negative")
	}
	return list
}

func (f *reportFlags) run(cmd *cobra.Command, path string) error {
	if err := checkOutput(f.out); err != nil {
		return err
	}
	bar := newWatch(cmd, "read", "values of records", f.quiet)
	f.Begin, f.Progress = bar.begin, bar.add
	r, err := Compile(cmd.Context(), path, f.ReportOptions)
	bar.end()
	if err != nil {
		return err
	}
	if f.out == "-" {
		return r.HTML(cmd.OutOrStdout())
	}
	if err := cli.WriteFile(f.out, r.HTML); err != nil {
		return err
	}
	if f.quiet {
		return nil
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %s, %d of %s good\n", printable(f.out),
		cli.Counted(r.Stats.Records, "record"), printable(path), len(r.Checks)-r.Failed(), cli.Counted(int64(len(r.Checks)), "check"))
	return err
}
