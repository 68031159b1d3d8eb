package layout

import (
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
)

const long = `List offset, size and meaning of every part of the dataset's files, and a line of NumPy that
maps each field by its offset; for chunked HDF5 datasets the number, sizes and places of the chunks.

With --window, layout prints the cost of windows at random places of the arrays: bytes read per byte
used, the chunks that would be best, and the command that writes them.`

const examples = `  inspect layout out/flat
  inspect layout --json out/photos.h5 | jq -r '.maps[].python'
  inspect layout --window 0=2 old.h5
  inspect layout --chunks --json old.h5 | jq -s 'max_by(.bytes)'`

// Command returns the command inspect layout.
func Command() *cobra.Command {
	var chunks bool
	var window string
	var sizes map[string]int
	cmd := cli.Command(&cobra.Command{
		Use: "layout [flags] DATASET", Short: "List the parts of its files by offset", Long: long, Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) (err error) {
			problems := datasetarg.One(cmd, args)
			if window != "" {
				if sizes, err = cli.ParseAxes(window); err != nil {
					problems = append(problems, "--window: "+err.Error())
				}
				if chunks {
					problems = append(problems, "--window and --chunks exclude each other")
				}
			}
			return cli.Usage(problems...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if window != "" {
				w, err := ReadWindows(args[0], sizes)
				if err != nil {
					return err
				}
				return cli.Print(cmd, w, w.Render)
			}
			if chunks {
				return ListChunks(cmd.OutOrStdout(), args[0], cli.AsJSON(cmd))
			}
			l, err := Read(args[0])
			if err != nil {
				return err
			}
			return cli.Print(cmd, l, l.Render)
		},
	})
	cli.JSONFlag(cmd)
	cmd.Flags().BoolVar(&chunks, "chunks", false, "list every chunk of an HDF5 file, one per line")
	cmd.Flags().StringVar(&window, "window", "",
		"print what windows of `AXIS=SIZE,...`, such as time=24,lat=128, cost")
	return cmd
}
