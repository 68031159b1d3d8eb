package change

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/hdf5/rewrite"
)

// makeChange makes a change of a dataset: by inFile for an HDF5 file on this machine, otherwise by
// inFolder. A change of a folder writes the new column at most, and the caller shows its progress.
// A change of a file writes all records again, so makeChange prints the size of the new file
// beforehand and shows the progress of two stages: records are collected first, columns compressed
// afterwards.
func makeChange(cmd *cobra.Command, ds *datasetarg.Generations, opts edit.Options,
	inFolder func(o edit.Options) (*store.Manifest, error),
	inFile func(path string, o rewrite.Options) (*store.Manifest, error)) (*store.Manifest, error) {
	if !ds.IsFile() {
		return inFolder(opts)
	}
	writing := cli.NewStage(cmd, cmd.Name(), "write", "records")
	defer writing.End()
	compressing := cli.NewStage(cmd, cmd.Name(), "compress", "bytes")
	defer compressing.End()
	return inFile(ds.Path, rewrite.Options{Options: opts, Progress: writing.Add, Compressed: compressing.Add,
		Begin: func(bytes, records int64) {
			if !cli.Quiet(cmd) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: a new file of about %s takes its place\n", shell.Line(ds.Path),
					units.Bytes(bytes))
			}
			writing.Begin(records)
		},
		Compressing: func(bytes int64) {
			writing.End()
			compressing.Begin(bytes)
		},
	})
}
