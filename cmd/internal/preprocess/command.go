// Package preprocess has the command preprocess and its subcommands merge, normalize and cache. It
// turns flags into a prepare.Config, calls package prepare, which does all work, and prints the
// prepare.Summary of the run as text or JSON.
//
//	flags.go           every flag in one table: name, value, help; and the checks of their values
//	pipeline_file.go   --pipeline: options and transforms from a file, or from a dataset's recipe
//	compress_flags.go  the flags of compression, whose defaults depend on the format
//	rechunk.go         --rechunk, which copies arrays and has flags of its own
//	summary.go         the summary for people
//
// A check collects all problems of a command line before it fails. Datasets of raw samples in the
// cache belong to package rawcache.
package preprocess

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"

	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/internal/version"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/store/hdf5"
)

const exits = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but some samples were skipped, 130 interrupted."

const long = `Turn raw samples into a dataset that training code maps into memory.

SOURCE is one of these. Its type is detected from its content; --from overrides that.
  a folder of images   SOURCE/CLASS/*.jpg, or images alone; folders named train, val and
                       test become splits
  csv, jsonl           tables of numbers, strings, boxes, labels and image paths
  tar, .gz, .zst, zip  archives of image folders, or of WebDataset samples
  parquet              as published on the Hugging Face Hub
  arrow                Arrow files, Feather, folders of datasets.save_to_disk
  mds, tokens          MosaicML Streaming; Megatron's .bin and .idx, llm.c and raw tokens
  tfrecord             tf.train.Example records, also compressed; a folder of shards
  zarr                 groups and arrays, version 2 and 3; folders, zip files, buckets
  npy, npz, idx, cifar arrays and images with labels
  hdf5, flat           HDF5 files from any program, and datasets
  stream               with SOURCE -: samples that a program sends, as penstock.Writer does
Quote globs and braces to name several files: 'shard-{000..127}.tar'. URLs
(s3://, gs://, azblob://, hdfs://) work too, for SOURCE also https:// and hf://. Images are JPEG, PNG, GIF, BMP, TIFF, WebP or Netpbm.

DEST is a folder of .npy files, an HDF5 file if its name ends in .h5, .hdf5 or .hdf, or Zarr if
it ends in .zarr. It appears when it is complete. Rerun a stopped command with --resume to continue.
Use --rank to share the work between machines: see preprocess merge --help.

` + exits

const examples = `  preprocess photos out/flat --resize 256 --crop 224
  preprocess photos out/photos.h5 --resize 224x224 --filter bicubic
  preprocess photos out/f32 --resize 256 --crop 224 --dtype float32 --normalize imagenet
  preprocess scans out/scans --resize 512x512 --color gray --on-error skip --max-errors 1%
  preprocess photos.csv out/boxes --fields 'file=images:image,boxes:boxes[xywh]' --resize 512x512
  preprocess mnist.csv out/mnist --fields 'label,pixel*=images:uint8[1,28,28]'
  preprocess 'shards/*.tar' out/web --keep-encoded --split train=0.95,val=0.05
  preprocess other.h5 out/flat --resume
  preprocess out/flat archive.h5 --compress gzip
  preprocess 's3://lab/photos?region=eu-central-1' s3://lab/ds --resize 256 --crop 224
  srun -n 64 preprocess photos /shared/ds --resize 256 --crop 224 --rank auto`

// Command returns the command preprocess, for cli.Main.
func Command() *cobra.Command {
	f := newFlags()
	cmd := cli.Command(&cobra.Command{
		Use: "preprocess [flags] SOURCE DEST", Short: "Turn raw samples into a dataset",
		Long: long, Example: examples,
		PreRunE: func(_ *cobra.Command, args []string) error { return f.check(args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	})
	f.register(cmd)
	cmd.AddCommand(mergeCommand(), normalizeCommand(), cacheCommand())
	return cmd
}

// run carries out what check has accepted.
func (f *flags) run(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if f.version {
		return printVersion(out)
	}
	if f.printPipeline {
		return printPipeline(out, f.config)
	}
	if f.rechunk != "" {
		return f.runRechunk(cmd)
	}
	progress := cli.ProgressOf(cmd, cmd.Name())
	if f.config.Source == prepare.StreamName {
		return f.runStream(cmd, progress)
	}
	summary, err := prepare.Run(cmd.Context(), f.config, progress)
	if err != nil {
		return err
	}
	return report(cmd, summary)
}

// runStream is run for samples from standard input. Standard output is a pipe to the program that
// sends the samples: it carries the answers of the protocol, and then the summary.
func (f *flags) runStream(cmd *cobra.Command, progress prepare.Progress) error {
	summary, err := prepare.RunProduced(cmd.Context(), f.config, cmd.InOrStdin(), cmd.OutOrStdout(), progress)
	if err != nil {
		return err
	}
	return report(cmd, summary)
}

// report prints the summary. Skipped samples are a SkippedError, although the dataset is complete
// without them: a script must notice that something is missing.
func report(cmd *cobra.Command, s *prepare.Summary) error {
	if err := printSummary(cmd, s); err != nil {
		return err
	}
	if n := int64(len(s.Skipped)); n > 0 {
		return &cli.SkippedError{Message: fmt.Sprintf("skipped %s of %s", units.Count(n),
			units.Counted(s.Source.Samples, "sample"))}
	}
	return nil
}

// printSummary prints the summary, as JSON also with --quiet.
func printSummary(cmd *cobra.Command, s *prepare.Summary) error {
	if cli.Quiet(cmd) && !cli.AsJSON(cmd) {
		return nil
	}
	return cli.Print(cmd, s, func(w io.Writer) error { return printText(w, s) })
}

// printVersion prints the versions, and the libraries that this build decodes and compresses with:
// they decide speed, and the decoder decides pixels.
func printVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "preprocess %s\n%s %s/%s\nJPEG decoder %s\n%s\ngzip in HDF5 by %s\nzstd by %s\n",
		version.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, imagefile.Backend(), hdf5.Version(),
		chunk.Backend, stream.ZstdBackend)
	return err
}

const mergeLong = `Join the parts of runs with --rank into one dataset.

Each run makes one part in DEST.parts, on any machine that sees the folder or bucket. Parts can be
killed and rerun. The merge then writes DEST, byte-identical to a single run. It refuses missing
parts, a part in two places, and parts of another source, recipe or version.

Name parts in other folders before DEST. Until the parts are removed, the dataset takes twice its
space. With --keep-shards the parts' files join DEST by hard links, or by copies inside the bucket:
no record is copied, and DEST differs from a single run in its shards only.

` + exits

const mergeExamples = `  preprocess photos out/flat --resize 256 --crop 224 --rank 0 --world-size 2
  preprocess photos out/flat --resize 256 --crop 224 --rank 1 --world-size 2
  preprocess merge out/flat
  srun -n 64 preprocess photos /shared/ds --resize 256 --crop 224 --rank auto
  preprocess merge --wait --keep-shards s3://lab/ds
  preprocess merge /node1/ds.parts /node2/ds.parts /shared/ds`

// mergeFlags holds the flags of preprocess merge.
type mergeFlags struct {
	config prepare.MergeConfig
	memory string
}

// mergeCommand returns the command preprocess merge.
func mergeCommand() *cobra.Command {
	m := new(mergeFlags)
	cmd := cli.Command(&cobra.Command{
		Use: "merge [flags] [PARTS...] DEST", Short: "Join the parts of runs with --rank into one dataset",
		Long: mergeLong, Example: mergeExamples,
		PreRunE: func(_ *cobra.Command, args []string) error { return m.check(args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return m.run(cmd) },
	})
	fs, c := cmd.Flags(), &m.config
	fs.SortFlags = false
	fs.BoolVar(&c.Overwrite, "overwrite", false, "replace DEST if it exists")
	fs.BoolVar(&c.Resume, "resume", false, "continue a stopped merge, or start if there is none")
	fs.BoolVar(&c.RemoveParts, "remove-parts", false, "remove the parts when DEST is complete")
	fs.BoolVar(&c.Wait, "wait", false, "wait for parts that are missing, and merge the others meanwhile")
	fs.BoolVar(&c.KeepShards, "keep-shards", false,
		"link the parts' files, or copy them inside the bucket")
	fs.IntVar(&c.Workers, "workers", 0, "`N` goroutines for checksums (default one per core)")
	fs.StringVar(&c.Spool, "spool", "",
		"build a dataset for a bucket in `FOLDER` (default the system's temporary folder)")
	fs.StringVar(&m.memory, "memory", "", "`BYTES` of records in flight (default 64MiB)")
	fs.Bool("json", false, "print the summary as JSON")
	cli.QuietFlag(cmd, "print errors only")
	return cmd
}

// check parses the flags and takes the arguments, or returns all problems. The last argument is
// DEST, so a single argument that ends in .parts is a folder of parts in its place.
func (m *mergeFlags) check(args []string) error {
	usage := new(cli.UsageError)
	var p problems
	if len(args) == 0 {
		usage.Arguments = "needs the name of a dataset, DEST"
	}
	for _, a := range args {
		if a == "" {
			usage.Arguments = "PARTS and DEST must not be empty"
		}
	}
	m.config.Memory = p.bytes("memory", m.memory)
	if n := m.config.Workers; n < 0 || n > prepare.MaxWorkers {
		p = append(p, fmt.Sprintf("--workers %d: must be from 1 to %d", n, prepare.MaxWorkers))
	}
	if len(args) > 0 {
		dest := args[len(args)-1]
		if name, parts := strings.CutSuffix(strings.TrimRight(dest, "/"), ".parts"); parts && len(args) == 1 {
			p = append(p, fmt.Sprintf("DEST %s: give the name of the dataset, %s", dest, name))
		}
	}
	if usage.Problems = p; usage.Arguments != "" || len(p) > 0 {
		return usage
	}
	m.config.Parts, m.config.Dest = args[:len(args)-1], args[len(args)-1]
	return nil
}

// run merges the parts and prints the summary.
func (m *mergeFlags) run(cmd *cobra.Command) error {
	s, err := prepare.Merge(cmd.Context(), m.config, cli.ProgressOf(cmd, cmd.Root().Name()))
	if err != nil {
		return err
	}
	return report(cmd, s)
}
