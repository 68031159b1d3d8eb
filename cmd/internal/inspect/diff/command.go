package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const long = `Compare two datasets: fields, classes, splits, statistics, recipe, skipped samples and every
value. For values, inspect prints how many differ, the first record that differs, and the largest
difference. The storage format does not matter. Fields of different types are compared as numbers.
Either one may be what preprocess reads, such as a folder of photos; image files are compared byte by
byte.

Records of two generations of a dataset are compared by their places in the files, so a record that
was deleted is one difference. Records of other datasets are compared by their source names, if
these are unique in both and some are the same, and otherwise by position. Records have the numbers of
the first dataset; added records have the numbers of the second.

Exit codes: 0 same, 1 different or unreadable, 2 wrong usage, 130 interrupted.`

const examples = `  inspect diff out/flat out/photos.h5
  inspect diff --tolerance 1e-3 monday tuesday
  inspect diff --data yesterday today && echo unchanged
  inspect diff --json a b | jq .differences`

// flagValues holds the flags of diff.
type flagValues struct {
	Options
}

// Command returns the command diff, for inspect and for penstock.
func Command() *cobra.Command {
	var f flagValues
	cmd := cli.Command(&cobra.Command{
		Use: "diff [flags] DATASET DATASET", Short: "Compare two datasets", Long: long, Example: examples,
		PreRunE: func(_ *cobra.Command, args []string) error { return cli.Usage(f.problems(args)...) },
		RunE:    f.run,
	})
	cmd.Args = func(_ *cobra.Command, args []string) error { // runs before URLs are replaced by the paths of copies
		f.Origins = slices.Clone(args)
		return nil
	}
	f.Register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&f.Tolerance, "tolerance", 0, "treat numbers at most `X` apart as equal")
	flags.BoolVar(&f.Data, "data", false, "compare only fields, classes, splits and values")
	flags.IntVar(&f.Workers, "workers", 0, "`N` reading goroutines (default one per core)")
	cli.QuietFlag(cmd, "print errors only")
	cli.JSONFlag(cmd)
	return cmd
}

// problems returns the problems of the arguments and flags, a sentence each.
func (f *flagValues) problems(args []string) (list []string) {
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		list = append(list, fmt.Sprintf("needs two arguments, DATASET and DATASET, not %d", len(args)))
	}
	if !(f.Tolerance >= 0) || math.IsInf(f.Tolerance, 0) {
		list = append(list, "--tolerance must be a number that is not negative")
	}
	if f.Workers < 0 {
		list = append(list, "--workers cannot be negative")
	}
	return list
}

// run compares and prints. Datasets that differ are an error, so that a script can branch on the
// exit code, as with diff(1).
func (f *flagValues) run(cmd *cobra.Command, args []string) error {
	bar := cli.NewStage(cmd, "inspect", "compare", "values of records")
	f.Begin, f.Progress = bar.Begin, bar.Add
	c, err := Compare(cmd.Context(), args[0], args[1], f.Options)
	bar.End()
	if err != nil {
		return err
	}
	if cli.AsJSON(cmd) || !cli.Quiet(cmd) {
		if err := cli.Print(cmd, c, c.Render); err != nil {
			return err
		}
	}
	return c.Err()
}
