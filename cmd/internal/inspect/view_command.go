package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

const viewLong = `Write view.h5 into a flat dataset: an HDF5 file of a few KB through which h5py, h5dump, MATLAB
and other programs read the .npy files. preprocess --append keeps it current.

HDF5 looks for the .npy files in the current folder. Set HDF5_EXTFILE_PREFIX='${ORIGIN}' in
the environment before the first read to look next to view.h5. With --absolute this is not
needed, but the dataset must not move.`

const viewExamples = `  inspect view out/flat
  HDF5_EXTFILE_PREFIX='${ORIGIN}' python -c 'import h5py; print(h5py.File("out/flat/view.h5")["images"][0])'
  inspect view --absolute -o photos.h5 out/flat`

// viewCommand returns the command inspect view.
func viewCommand() *cobra.Command {
	var opts viewOptions
	cmd := cli.Command(&cobra.Command{
		Use: "view [flags] DATASET", Short: "Write an HDF5 file over its .npy files", Long: viewLong, Example: viewExamples,
		PreRunE: func(cmd *cobra.Command, args []string) error { return cli.Usage(datasetarg.One(cmd, args)...) },
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := writeView(args[0], opts)
			if err != nil {
				return err
			}
			return cli.Print(cmd, v, v.Render)
		},
	})
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "", "HDF5 `FILE` to write (default: view.h5 in DATASET)")
	cmd.Flags().BoolVar(&opts.Absolute, "absolute", false, "refer to the .npy files by absolute paths")
	cli.JSONFlag(cmd)
	return cmd
}

// Render prints what was written, and the lines of Python that open it.
func (v *viewFile) Render(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s, %s of HDF5\n\nIn Python\n", shell.Line(v.Path), strings.Join(v.Datasets, ", "),
		units.Counted(v.Records, "record"), units.Bytes(v.Bytes))
	if !v.Absolute {
		b.WriteString("  os.environ[\"HDF5_EXTFILE_PREFIX\"] = \"${ORIGIN}\"  # the .npy files are found from where " +
			"the file is\n")
	}
	t := cli.Table{Indent: 2}
	for _, name := range v.Datasets {
		t.Add(dataset.Identifier(name), fmt.Sprintf("= h5py.File(%s)[%s]", dataset.Quote(v.Path), dataset.Quote(name)))
	}
	b.WriteString(t.String())
	_, err := io.WriteString(w, b.String())
	return err
}
