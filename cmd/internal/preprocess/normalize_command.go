package preprocess

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

const normalizeLong = `Store the mean and standard deviation of the images in a dataset, which readers then apply.
No record is rewritten.

STATISTICS are imagenet, inception, clip, dataset (measured on its own images), or
MEAN/STD of x/255, one for each channel or one for all, such as 0.5,0.5,0.5/0.25,0.25,0.25.

DATASET is a flat folder, which gets a new id and the next generation; programs that have it open
keep what they opened. HDF5 and Zarr are written again instead: preprocess DATASET DEST --normalize STATISTICS.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.`

const normalizeExamples = `  preprocess normalize out/flat imagenet
  preprocess normalize out/flat dataset
  preprocess normalize out/flat dataset --split train
  preprocess normalize out/flat 0.5/0.25`

// normalizeFlags holds the arguments and flags of preprocess normalize.
type normalizeFlags struct {
	dataset string
	figures prepare.Normalize
	split   string
}

// normalizeCommand returns the command preprocess normalize.
func normalizeCommand() *cobra.Command {
	n := new(normalizeFlags)
	cmd := cli.Command(&cobra.Command{
		Use:   "normalize [flags] DATASET STATISTICS",
		Short: "Store mean and std of the images in a dataset, without rewriting it",
		Long:  normalizeLong, Example: normalizeExamples,
		PreRunE: func(_ *cobra.Command, args []string) error { return n.check(args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return n.run(cmd) },
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&n.split, "split", "", "`SPLIT` that dataset is computed from, or all (default the training split, all "+
		"records without splits)")
	fs.Bool("json", false, "print the fields as JSON")
	cli.QuietFlag(cmd, "print nothing but errors")
	return cmd
}

// check takes the arguments, or returns all problems. Statistics of arrays are refused, because
// arrays are normalized when they are written: only uint8 images can be normalized by the reader.
func (n *normalizeFlags) check(args []string) error {
	usage := new(cli.UsageError)
	if len(args) != 2 || args[0] == "" {
		usage.Arguments = fmt.Sprintf("needs DATASET and STATISTICS, and has %d arguments", len(args))
		return usage
	}
	n.dataset = args[0]
	var err error
	switch n.figures, err = prepare.ParseNormalize(args[1]); {
	case err != nil:
		usage.Problems = append(usage.Problems, "STATISTICS: "+err.Error())
	case n.figures.Fields != nil:
		usage.Problems = append(usage.Problems, "STATISTICS: statistics of arrays are applied when they are written: "+
			shell.Penstock("preprocess SOURCE DEST --normalize", args[1]))
	case n.figures.None():
		usage.Problems = append(usage.Problems, "STATISTICS: none leaves nothing to store")
	}
	if n.split != "" && !n.figures.Dataset {
		usage.Problems = append(usage.Problems, "--split "+n.split+": says what dataset is computed from, which is not given")
	}
	if remote.IsURL(n.dataset) {
		usage.Problems = append(usage.Problems, "DATASET: it must be a folder of this machine; to write one from it, run: "+
			shell.Rewrite(remote.Redact(n.dataset), "--normalize "+shell.Line(args[1])))
	}
	if len(usage.Problems) > 0 {
		return usage
	}
	return nil
}

// run stores the statistics in the manifest and prints them.
func (n *normalizeFlags) run(cmd *cobra.Command) error {
	m, split, err := prepare.SetNormalization(n.dataset, n.figures, n.split)
	if err != nil || cli.Quiet(cmd) {
		return err
	}
	out := map[string]any{"id": m.ID, "generation": m.Generation, "split": split, "fields": m.Fields}
	return cli.Print(cmd, out, func(w io.Writer) error { return n.print(w, m, split) })
}

// print prints the statistics that readers apply, of each image field.
func (n *normalizeFlags) print(w io.Writer, m *store.Manifest, split string) error {
	of := ""
	if split != "" {
		of = " in the split " + split
	}
	for _, f := range m.Fields {
		if layout.PixelBytes(f.Spec) && f.Normalization != nil && !f.Normalization.Applied {
			fmt.Fprintf(w, "%s: mean %.4g, standard deviation %.4g of x/255%s\n", shell.Line(f.Name), f.Normalization.Mean,
				f.Normalization.Std, of)
		}
	}
	_, err := fmt.Fprintf(w, "%s: id %s, generation %d\n", shell.Line(n.dataset), m.ID, m.Generation)
	return err
}
