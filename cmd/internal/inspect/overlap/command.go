package overlap

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/loader/views"
)

const long = `Print how many elements of arrays the windows of two or more views share, by field.
For a training and a validation set this must be 0; for inputs it may be more if only labels are
kept apart. No records are read.

Exit codes: 0 nothing is shared, 1 windows share elements, or failed, 2 wrong usage, 130 interrupted.`

const examples = `  inspect overlap train.view.json val.view.json
  inspect overlap --json train.view.json val.view.json test.view.json | jq .pairs`

// Command returns the command inspect overlap.
func Command() *cobra.Command {
	var asJSON bool
	cmd := cli.Command(&cobra.Command{
		Use: "overlap [flags] VIEW VIEW...", Short: "Count the elements that windows of views share", Long: long,
		Example: examples,
		PreRunE: func(_ *cobra.Command, args []string) error { return cli.Usage(problems(args)...) },
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := Compare(cmd.Context(), args)
			if err != nil {
				return err
			}
			if err := cli.Print(cmd.OutOrStdout(), asJSON, r, r.Render); err != nil {
				return err
			}
			return r.Err()
		},
	})
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func problems(args []string) (list []string) {
	if len(args) < 2 {
		list = append(list, fmt.Sprintf("needs two views or more, not %d", len(args)))
	}
	for _, path := range args {
		if !views.Is(path) {
			list = append(list, fmt.Sprintf("%s is not a view of windows, whose name ends with %s", path, views.Suffix))
		}
	}
	return list
}
