package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/raw"
)

const filterLong = `Count the records for which an expression holds, list them, or write a view of them,
which is a dataset for all commands and for Python. An expression compares fields with numbers,
strings and the names of classes: see docs/views.md. preprocess VIEW DEST copies the records.`

const filterExamples = `  inspect filter out/flat "labels = 'circle' and mean(images) > 100"
  inspect filter out/flat "labels in ('circle', 'square') and not sample(0.1)" -o most.view.json
  inspect filter out/photos.h5 "sample(0.01, 7)" --numbers`

// filterFlags holds the flags of filter.
type filterFlags struct {
	output  string
	numbers bool
}

// filterCommand returns the command inspect filter.
func filterCommand() *cobra.Command {
	var f filterFlags
	cmd := cli.Command(&cobra.Command{
		Use: "filter [flags] DATASET EXPRESSION", Short: "Find records by a condition",
		Long: filterLong, Example: filterExamples,
		PreRunE: func(cmd *cobra.Command, args []string) error { return cli.Usage(f.problems(cmd, args)...) },
		RunE:    f.run,
	})
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write a view of the records to `FILE`.view.json")
	cmd.Flags().BoolVar(&f.numbers, "numbers", false, "print the numbers of the records, one on a line")
	cli.JSONFlag(cmd)
	return cmd
}

// problems returns the problems of the arguments and flags, a sentence each.
func (f *filterFlags) problems(cmd *cobra.Command, args []string) (list []string) {
	if len(args) != 2 || args[0] == "" {
		list = append(list, fmt.Sprintf("needs two arguments, DATASET and EXPRESSION, not %d; quote an expression with "+
			"spaces", len(args)))
	}
	if f.output != "" && !views.Is(f.output) {
		list = append(list, fmt.Sprintf("-o %s: the name of a view ends with %s", f.output, views.Suffix))
	}
	if cli.AsJSON(cmd) && f.numbers {
		list = append(list, "--json and --numbers print different things; give one")
	}
	return list
}

// filterResult describes the records that match, as --json prints it.
type filterResult struct {
	Dataset string `json:"dataset"`
	Where   string `json:"where"`
	Found   int    `json:"found"`
	Records int    `json:"records"` // of the dataset
	View    string `json:"view,omitempty"`

	set *expr.Set
}

// run finds the records, writes the view if -o asks for one, and prints the numbers or the summary.
// The view has the condition's text, not the numbers.
func (f *filterFlags) run(cmd *cobra.Command, args []string) error {
	r, node, err := find(cmd.Context(), args[0], args[1])
	if err != nil {
		return err
	}
	if r.View = f.output; r.View != "" {
		if err := dataset.WriteView(r.View, &views.Node{Select: node, Where: r.Where}); err != nil {
			return err
		}
	}
	if f.numbers {
		return cli.Screen(cmd.OutOrStdout(), r.list)
	}
	return cli.Print(cmd, r, r.Render)
}

// find opens a dataset and finds the records for which the condition where holds. The condition is
// parsed first: a mistake in it should not wait for the dataset. node is the dataset as a part of a
// view.
func find(ctx context.Context, path, where string) (r *filterResult, node *views.Node, err error) {
	where = strings.TrimSpace(where)
	parsed, err := expr.Parse(where)
	if err != nil {
		return nil, nil, err
	}
	ds, err := views.Open(ctx, path, views.Options{Open: raw.OpenPart})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	set, err := parsed.Find(ctx, ds.Source)
	if err != nil {
		return nil, nil, err
	}
	r = &filterResult{Dataset: path, Where: where, Found: set.Count(), Records: set.Len(), set: set}
	return r, dataset.Node(path, ds), nil
}

// mostShown is the number of records that are listed for people.
const mostShown = 10

// Render prints the number of records and the first record numbers.
func (r *filterResult) Render(w io.Writer) error {
	var b strings.Builder
	share := ""
	if r.Records > 0 {
		share = fmt.Sprintf(" (%.3g %%)", 100*float64(r.Found)/float64(r.Records))
	}
	fmt.Fprintf(&b, "%s of %s%s\n", units.Count(int64(r.Found)), units.Counted(int64(r.Records), "record"), share)
	shown := 0
	for i := range r.set.All() {
		if shown++; shown > mostShown {
			b.WriteString(", ...")
			break
		}
		separator := ", "
		if shown == 1 {
			separator = "  "
		}
		fmt.Fprintf(&b, "%s%d", separator, i)
	}
	if shown > 0 {
		b.WriteByte('\n')
	}
	if r.View != "" {
		fmt.Fprintf(&b, "view: %s\n", shell.Line(r.View))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// list prints the number of each record that was found, one a line.
func (r *filterResult) list(w io.Writer) error {
	for i := range r.set.All() {
		if _, err := fmt.Fprintln(w, i); err != nil {
			return err
		}
	}
	return nil
}
