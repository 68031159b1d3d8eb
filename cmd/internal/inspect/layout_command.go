package inspect

import (
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const layoutLong = `List offset, size and meaning of every part of the dataset's files, and a line of NumPy that
maps each field by its offset. For chunked HDF5 datasets, layout prints the number, sizes
and places of the chunks; --chunks lists each chunk.`

const layoutExamples = `  inspect layout out/flat
  inspect layout out/photos.h5
  inspect layout --json out/photos.h5 | jq -r '.maps[].python'
  inspect layout --chunks old.h5
  inspect layout --chunks --json old.h5 | jq -s 'max_by(.bytes)'`

func layoutCommand() *cobra.Command {
	var asJSON, chunks bool
	cmd := &cobra.Command{
		Use: "layout [flags] DATASET", Short: "List the parts of its files by offset", Long: layoutLong, Example: layoutExamples,
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
	cmd.Flags().BoolVar(&chunks, "chunks", false, "list every chunk of an HDF5 file, one per line")
	return cmd
}
