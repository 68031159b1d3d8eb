package preprocess

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/preprocess/field"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

const normalizeLong = `Note the mean and standard deviation of the images in a dataset, which readers then apply:
torch's TorchDataset with normalize=True, transforms, and so on. No record is rewritten.

FIGURES are imagenet, inception, clip, dataset (those of its own images), or
MEAN/STD of x/255, one for each channel or one for all, such as 0.5,0.5,0.5/0.25,0.25,0.25.

DATASET is a flat folder. Its manifest is replaced in one step, with a new id and the next
generation; programs that have the dataset open keep what they opened.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.`

const normalizeExamples = `  preprocess normalize out/flat imagenet
  preprocess normalize out/flat dataset
  preprocess normalize out/flat dataset --split train
  preprocess normalize out/flat 0.5/0.25`

// normalizeFlags are the arguments and flags of normalize.
type normalizeFlags struct {
	dataset     string
	figures     field.Normalize
	split       string
	json, quiet bool
}

func normalizeCommand() *cobra.Command {
	n := new(normalizeFlags)
	cmd := cli.Command(&cobra.Command{
		Use: "normalize [flags] DATASET FIGURES", Short: "Note mean and deviation of the images in a dataset, without rewriting it",
		Long: normalizeLong, Example: normalizeExamples,
		PreRunE: func(_ *cobra.Command, args []string) error { return n.check(args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return n.run(cmd.OutOrStdout()) },
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&n.split, "split", "", "`SPLIT` that dataset is computed from, or all (default the training split, all records without splits)")
	fs.BoolVar(&n.json, "json", false, "print the fields as JSON")
	fs.BoolVarP(&n.quiet, "quiet", "q", false, "print nothing but errors")
	return cmd
}

// check takes the arguments, or returns their problem.
func (n *normalizeFlags) check(args []string) error {
	usage := new(cli.UsageError)
	if len(args) != 2 || args[0] == "" {
		usage.Arguments = fmt.Sprintf("needs DATASET and FIGURES, and has %d arguments", len(args))
		return usage
	}
	n.dataset = args[0]
	var err error
	switch n.figures, err = field.ParseNormalize(args[1]); {
	case err != nil:
		usage.Problems = append(usage.Problems, "FIGURES: "+err.Error())
	case n.figures.Fields != nil:
		usage.Problems = append(usage.Problems, "FIGURES: those of arrays are applied when they are written: "+shell.Penstock("preprocess SOURCE DEST --normalize", args[1]))
	case n.figures.None():
		usage.Problems = append(usage.Problems, "FIGURES: none is nothing to note")
	}
	if n.split != "" && !n.figures.Dataset {
		usage.Problems = append(usage.Problems, "--split "+n.split+": says what dataset is computed from, which is not given")
	}
	if remote.IsURL(n.dataset) {
		usage.Problems = append(usage.Problems, "DATASET: it must be a folder of this machine")
	}
	if len(usage.Problems) > 0 {
		return usage
	}
	return nil
}

func (n *normalizeFlags) run(out io.Writer) error {
	split, err := n.measured()
	if err != nil {
		return err
	}
	m, err := write.SetNormalization(n.dataset, split, n.choose)
	if err != nil || n.quiet {
		return err
	}
	if n.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"id": m.ID, "generation": m.Generation, "split": split, "fields": m.Fields})
	}
	for _, f := range m.Fields {
		if layout.PixelBytes(f.Spec) && f.Normalization != nil && !f.Normalization.Applied {
			fmt.Fprintf(out, "%s: mean %.4g, standard deviation %.4g of x/255%s\n", f.Name, f.Normalization.Mean, f.Normalization.Std, ofSplit(split))
		}
	}
	_, err = fmt.Fprintf(out, "%s: id %s, generation %d\n", n.dataset, m.ID, m.Generation)
	return err
}

// measured returns the split that the dataset's own figures come from; "" means all records.
func (n *normalizeFlags) measured() (string, error) {
	if !n.figures.Dataset || n.split == allRecords {
		return "", nil
	}
	ds, err := store.Open(n.dataset, store.OpenOptions{})
	if err != nil {
		return "", err
	}
	var names []string
	if ds.Manifest != nil {
		names = ds.Manifest.SplitNames()
	}
	switch {
	case n.split != "" && !slices.Contains(names, n.split):
		return "", fmt.Errorf("--split %s: there is no such split%s", n.split, suggest.Hint(n.split, append(names, allRecords)))
	case n.split != "" || len(names) == 0:
		return n.split, nil
	}
	return trainingSplit(names), nil
}

// choose returns the figures of a field.
func (n *normalizeFlags) choose(f store.Field, own *store.Normalization) (*store.Normalization, error) {
	if n.figures.Dataset {
		return own, nil
	}
	if channels := len(own.Mean); len(n.figures.Mean) != 1 && len(n.figures.Mean) != channels {
		return nil, fmt.Errorf("%s has %d channels, and its images have %d", n.figures, len(n.figures.Mean), channels)
	}
	return n.figures.Field(len(own.Mean), false), nil
}
