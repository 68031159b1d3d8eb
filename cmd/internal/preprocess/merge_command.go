package preprocess

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const mergeLong = `Join the parts of runs with --rank into one dataset.

Each run makes one part in DEST.parts, on any machine that sees the folder or bucket. Parts can
be killed and rerun. The merge then writes DEST with the bytes of a single run. It refuses
missing parts, a part in two places, and parts of another source, recipe or version.

Name parts in other folders before DEST. The merge reads and writes every record once. Until
the parts are removed, the dataset takes its space twice.

` + exits

const mergeExamples = `  preprocess photos out/flat --resize 256 --crop 224 --rank 0 --world-size 2
  preprocess photos out/flat --resize 256 --crop 224 --rank 1 --world-size 2
  preprocess merge out/flat
  srun -n 64 preprocess photos /shared/ds --resize 256 --crop 224 --rank auto
  preprocess merge /node1/ds.parts /node2/ds.parts /shared/ds`

// mergeFlags are the flags of merge.
type mergeFlags struct {
	config      MergeConfig
	memory      string
	json, quiet bool
}

func mergeCommand() *cobra.Command {
	m := new(mergeFlags)
	cmd := &cobra.Command{
		Use: "merge [flags] [PARTS...] DEST", Short: "Join the parts of runs with --rank into one dataset",
		Long: mergeLong, Example: mergeExamples,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		PreRunE:               func(_ *cobra.Command, args []string) error { return m.check(args) },
		RunE:                  func(cmd *cobra.Command, _ []string) error { return m.run(cmd) },
	}
	fs, c := cmd.Flags(), &m.config
	fs.SortFlags = false
	fs.BoolVar(&c.Overwrite, "overwrite", false, "replace DEST if it exists")
	fs.BoolVar(&c.Resume, "resume", false, "continue a stopped merge, or start if there is none")
	fs.BoolVar(&c.RemoveParts, "remove-parts", false, "remove the parts when DEST is complete")
	fs.IntVar(&c.Workers, "workers", 0, "`N` goroutines for checksums (default one per core)")
	fs.StringVar(&c.Spool, "spool", "", "`FOLDER` in which a dataset for a bucket is built (default the system's temporary folder)")
	fs.StringVar(&m.memory, "memory", "", "`BYTES` of records in flight (default 64MiB)")
	fs.BoolVar(&m.json, "json", false, "print the summary as JSON")
	fs.BoolVar(&m.quiet, "quiet", false, "print errors only")
	return cmd
}

// check takes the arguments, or says what is wrong with them and the flags.
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
	if m.memory != "" {
		var err error
		m.config.Memory, err = cli.ParseBytes(m.memory)
		p.add("memory", m.memory, err)
	}
	if m.config.Workers < 0 {
		p = append(p, fmt.Sprintf("--workers %d: must not be negative", m.config.Workers))
	}
	if usage.Problems = p; usage.Arguments != "" || len(p) > 0 {
		return usage
	}
	m.config.Parts, m.config.Dest = args[:len(args)-1], args[len(args)-1]
	return nil
}

func (m *mergeFlags) run(cmd *cobra.Command) error {
	s, err := Merge(cmd.Context(), m.config, cli.NewProgress(cmd.ErrOrStderr(), cmd.Root().Name(), m.quiet))
	if err != nil {
		return err
	}
	return report(cmd, s, m.json, m.quiet)
}
