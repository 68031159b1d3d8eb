package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
)

const long = `Show fields, classes, statistics and the recipe of a dataset, and how to open it. DATASET is
a folder or an HDF5 file. For an HDF5 file that preprocess did not write, inspect shows how
its data are stored, what reading a record costs, and the command that makes it fast. Times
are estimates for one core and a file in memory.

Exit codes: 0 done, 1 failed or corrupt, 2 wrong usage, 130 interrupted.`

const examples = `  inspect out/flat                             a summary
  inspect out/flat --json | jq .records        the same for programs
  inspect show out/flat 0 5:8                  values of records
  inspect show --recipe out/flat               how it was made, for preprocess --pipeline
  inspect stats out/flat                       statistics and histograms of every value
  inspect report -o report.html out/flat       a page with samples, plots and checks
  inspect diff out/flat out/photos.h5          are they the same
  inspect verify out/flat                      compare every record with its checksum
  inspect layout out/photos.h5                 what lies where in the file
  inspect view out/flat                        an HDF5 file for h5py over its .npy files
  inspect preview -o grid.png out/photos.h5    a picture of samples and their labels`

// Command returns the command inspect, for cli.Main.
func Command() *cobra.Command {
	var asJSON, version bool
	opts := TextOptions{}
	cmd := &cobra.Command{
		Use: "inspect [flags] DATASET", Short: "Show what a dataset holds", Long: long, Example: examples,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return nil
			}
			return cli.Usage(append(oneDataset(cmd, args), opts.problems()...)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return printVersion(cmd.OutOrStdout())
			}
			s, err := Describe(args[0])
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), asJSON, s, func(w io.Writer) error { return s.Render(w, opts) })
		},
	}
	flagJSON(cmd, &asJSON)
	cmd.Flags().IntVar(&opts.Classes, "classes", 20, "list at most `N` classes; 0 lists all")
	cmd.Flags().BoolVar(&version, "version", false, "print the version and exit")
	cmd.SuggestionsMinimumDistance = 2
	var cache datasetarg.Cache
	cache.Flags(cmd.PersistentFlags())
	cmd.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := cli.Usage(cache.Settle()...); err != nil {
			return err
		}
		quiet, _ := cmd.Flags().GetBool("quiet") // not all have it
		return cache.Local(cmd.Context(), args, cli.NewProgress(cmd.ErrOrStderr(), "inspect", quiet).Note)
	}
	cmd.PersistentPostRun = func(*cobra.Command, []string) { cache.Close() }
	cmd.AddCommand(showCommand(), verifyCommand(), layoutCommand(), previewCommand(), diffCommand(), statsCommand(), reportCommand(), viewCommand())
	return cmd
}

func flagJSON(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "json", false, "print JSON")
}

// oneDataset says what is wrong with arguments that should be one dataset.
func oneDataset(cmd *cobra.Command, args []string) []string {
	switch {
	case len(args) == 1 && args[0] != "":
		return nil
	case len(args) <= 1:
		return []string{"no DATASET given"}
	case cmd.HasAvailableSubCommands():
		return []string{fmt.Sprintf("%q is neither a command nor the only DATASET", args[0]) + meant(cmd, args[0])}
	}
	return []string{fmt.Sprintf("one DATASET at a time, not %d: %q", len(args), args)}
}

// meant names the command that was mistyped.
func meant(cmd *cobra.Command, word string) string {
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// show prints an answer: v as JSON, or by text.
func show(w io.Writer, asJSON bool, v any, text func(io.Writer) error) error {
	if !asJSON {
		return text(w)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "inspect %s, %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
