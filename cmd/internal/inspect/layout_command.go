package inspect

import (
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const layoutLong = `List what lies where: offset, size and meaning of every part of the dataset's files,
and the line of NumPy that maps each field by its offset, with no other library. Of chunked
datasets of an HDF5 file it tells how many chunks there are, how large and where they lie;
--chunks lists them instead, a line each.`

const layoutExamples = `  inspect layout out/flat
  inspect layout out/photos.h5
  inspect layout --json out/photos.h5 | jq -r '.maps[].python'
  inspect layout --chunks old.h5
  inspect layout --chunks --json old.h5 | jq -s 'max_by(.bytes)'`

func layoutCommand() *cobra.Command {
	var asJSON, chunks bool
	cmd := &cobra.Command{
		Use: "layout [flags] DATASET", Short: "List what lies where in its files", Long: layoutLong, Example: layoutExamples,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		PreRunE:               func(cmd *cobra.Command, args []string) error { return cli.Usage(oneDataset(cmd, args)...) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if chunks {
				return ListChunks(cmd.OutOrStdout(), args[0], asJSON)
			}
			l, err := Chart(args[0])
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), asJSON, l, l.Render)
		},
	}
	flagJSON(cmd, &asJSON)
	cmd.Flags().BoolVar(&chunks, "chunks", false, "list every chunk of an HDF5 file, a line each; with --json a line of JSON each")
	return cmd
}
