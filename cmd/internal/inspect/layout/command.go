package layout

import (
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
)

const long = `List offset, size and meaning of every part of the dataset's files, and a line of NumPy that
maps each field by its offset. For chunked HDF5 datasets, layout prints the number, sizes
and places of the chunks; --chunks lists each chunk.`

const examples = `  inspect layout out/flat
  inspect layout out/photos.h5
  inspect layout --json out/photos.h5 | jq -r '.maps[].python'
  inspect layout --chunks old.h5
  inspect layout --chunks --json old.h5 | jq -s 'max_by(.bytes)'`

func Command() *cobra.Command {
	var asJSON, chunks bool
	cmd := cli.Command(&cobra.Command{
		Use: "layout [flags] DATASET", Short: "List the parts of its files by offset", Long: long, Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error { return cli.Usage(datasetarg.One(cmd, args)...) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if chunks {
				return ListChunks(cmd.OutOrStdout(), args[0], asJSON)
			}
			l, err := Read(args[0])
			if err != nil {
				return err
			}
			return cli.Print(cmd.OutOrStdout(), asJSON, l, l.Render)
		},
	})
	cli.JSONFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&chunks, "chunks", false, "list every chunk of an HDF5 file, one per line")
	return cmd
}
