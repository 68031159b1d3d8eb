package verify

import (
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
)

const long = `Read every record and compare it with its checksum (CRC32C); compare sizes and headers
of the files with the manifest. A line names field, shard, records, file and byte of each
corruption. An HDF5 file written by preprocess has one more checksum, of everything except the
records; for Zarr, metadata and padding are compared, too. In HDF5 files written by other programs,
verify checks the structure, and the chunks with checksums of the filters deflate and fletcher32.

Boxes that reach out of their images are reported, but not as corruption; the transforms
SanitizeBoundingBoxes and ClampBoundingBoxes handle them.

Exit codes: 0 whole, 1 corrupt or unreadable, 2 wrong usage, 130 interrupted.`

const examples = `  inspect verify out/flat
  inspect verify --workers 16 /mnt/raid/train.h5
  inspect verify --json out/flat | jq .corruptions
  inspect verify --quiet out/flat && train out/flat`

// Command returns the command inspect verify.
func Command() *cobra.Command {
	var opts Options
	cmd := cli.Command(&cobra.Command{
		Use: "verify [flags] DATASET", Short: "Compare every record with its checksum", Long: long, Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			problems := datasetarg.One(cmd, args)
			if opts.Workers < 0 {
				problems = append(problems, "--workers cannot be negative")
			}
			return cli.Usage(problems...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := verifyWithProgress(cmd, args[0], opts)
			if err != nil {
				return err
			}
			text := v.Render
			if cli.Quiet(cmd) {
				text = v.RenderCorruptions
			}
			if err := cli.Print(cmd, v, text); err != nil {
				return err
			}
			return v.Err()
		},
	})
	cli.JSONFlag(cmd)
	cmd.Flags().IntVar(&opts.Workers, "workers", 0, "`N` reading goroutines (default one per core)")
	cli.QuietFlag(cmd, "print corruption only, and no progress")
	return cmd
}

// slowBytes is the number of bytes above which a verification shows progress in a log file.
const slowBytes = 1 << 30

// verifyWithProgress verifies the dataset and shows the progress in MiB. opts.Progress is called by
// one goroutine at a time, so the sums need no lock.
func verifyWithProgress(cmd *cobra.Command, path string, opts Options) (*Verification, error) {
	var progress *cli.Progress
	var bytes, reported int64
	errOut := cmd.ErrOrStderr()
	opts.Begin = func(total int64) {
		progress = cli.NewProgress(errOut, "inspect", cli.Quiet(cmd) || total < slowBytes && !cli.IsTerminal(errOut))
		progress.Begin("verify", total>>20, "MiB")
	}
	opts.Progress = func(n int64) {
		bytes += n
		progress.Add(bytes>>20 - reported)
		reported = bytes >> 20
	}
	v, err := Dataset(cmd.Context(), path, opts)
	if progress != nil {
		progress.End()
	}
	return v, err
}
