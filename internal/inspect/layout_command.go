package inspect

import (
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/internal/cli"
)

const layoutLong = `List what lies where: offset, size and meaning of every part of the dataset's files,
and the line of NumPy that maps each field by its offset, with no other library.`

const layoutExamples = `  inspect layout out/flat
  inspect layout out/photos.h5
  inspect layout --json out/photos.h5 | jq -r '.maps[].python'`

func layoutCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "layout [flags] DATASET", Short: "List what lies where in its files", Long: layoutLong, Example: layoutExamples,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		PreRunE:               func(cmd *cobra.Command, args []string) error { return cli.Usage(oneDataset(cmd, args)...) },
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := Chart(args[0])
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), asJSON, l, l.Render)
		},
	}
	flagJSON(cmd, &asJSON)
	return cmd
}
