package loadbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/internal/version"
)

const long = `Measure how fast a dataset loads, row by row: one record at a time, with workers and prefetch,
page-locked memory, persistent workers, device prefetch, batched fetch, and prepared records
with and without copies. The rows follow PyTorch's tutorial "Data Loading Optimization"; its
published numbers are shown where the parameters match.

In every row the consumer reads each cache line of each batch. "Total" includes set-up. "Of
limit" compares with the shortest time that this machine needs, calibrated in the same run.
The last line names the bottleneck and what to do.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted (after printing the results).`

const examples = `  loadbench --synthetic                    the tutorial's own parameters (about 5 minutes)
  loadbench --synthetic --quick            an eighth of that
  loadbench out/flat                       the rows on a dataset
  loadbench photos                         the rows on raw samples that are not prepared
  loadbench out/flat --train-step 100ms    waits in a training loop, as in the configuration guide
  loadbench out/flat --tables all          all tables: batch, workers, prefetch varied, too
  loadbench out/flat --delay 2ms --work cpu     with 2 ms of computing a record`

// command is the command line.
type command struct {
	Options
	shape, budget     string
	plot              string // a file
	markdown, version bool
}

// Command returns the command loadbench, for cli.Main.
func Command() *cobra.Command {
	c := &command{Options: Defaults()}
	cmd := cli.Command(&cobra.Command{
		Use: "loadbench [flags] DATASET", Short: "Measure how fast a dataset is loaded", Long: long, Example: examples,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if c.version {
				return nil
			}
			return cli.Usage(c.settle(cmd, args)...)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.version {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "loadbench %s, %s %s/%s\n", version.Version(), runtime.Version(),
					runtime.GOOS, runtime.GOARCH)
				return err
			}
			return c.run(cmd)
		},
	})
	c.flags(cmd)
	return cmd
}

// flags declares the flags, in groups.
func (c *command) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&c.Synthetic, "synthetic", false, "measure the tutorial's synthetic dataset, made in a temporary folder")
	f.IntVar(&c.Size, "size", c.Size, "`N` records of the synthetic dataset")
	f.StringVar(&c.shape, "shape", "3x224x224", "`SHAPE` of the synthetic float32 records")
	f.StringSliceVar(&c.Fields, "fields", nil, "load only these `FIELDS`, separated by commas")
	f.StringVar(&c.Split, "split", "", "load only this `SPLIT`")
	c.Cache.Flags(f)
	cli.Group(cmd, "Data", "synthetic", "size", "shape", "fields", "split", "cache-dir", "cache-size")
	f.DurationVar(&c.Delay, "delay", c.Delay, "`TIME` to prepare a record (for a DATASET the default is 0)")
	f.StringVar(&c.Work, "work", c.Work, "`WHAT` the delay is: sleep, cpu, both (a table each) or replay (sleep as in the guide's log)")
	f.IntVar(&c.Batch, "batch", c.Batch, "`N` records per batch")
	f.IntVar(&c.Batches, "batches", c.Batches, "`N` batches per row")
	f.DurationVar(&c.MinTime, "min-time", 500*time.Millisecond,
		"measure more batches until a row takes `TIME`; 0 if --batches is set")
	f.IntVar(&c.Workers, "workers", c.Workers, "`N` workers")
	f.IntVar(&c.Prefetch, "prefetch", c.Prefetch, "prefetch `N` batches per worker")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "`SEED` of the order and the synthetic records")
	f.StringVar(&c.budget, "budget", "", "limit of a row's buffers in `BYTES` (default half of the free memory)")
	f.BoolVar(&c.Quick, "quick", false, "measure an eighth of the batches")
	f.StringSliceVar(&c.Tables, "tables", nil, "`WHAT` to measure: rows, guide, batch, workers, prefetch, or all; "+
		"the default is rows, or guide with --train-step")
	f.DurationVar(&c.TrainStep, "train-step", c.TrainStep, "guide: `TIME` of a training step")
	f.IntVar(&c.Epochs, "epochs", c.Epochs, "guide: `N` epochs of at most --batches batches")
	f.Float64Var(&c.Scale, "scale", c.Scale, "scale the delay and the training step by `X`")
	cli.Group(cmd, "Measuring", "tables", "train-step", "epochs", "scale", "delay", "work", "batch", "batches", "min-time",
		"workers", "prefetch", "seed", "budget", "quick")
	cli.JSONFlag(cmd)
	f.BoolVar(&c.markdown, "markdown", false, "print tables in Markdown")
	f.StringVar(&c.Log, "log", "", "write one line per batch to `FILE` (.csv or .jsonl)")
	f.StringVar(&c.plot, "plot", "", "draw the rates of each table's rows to `FILE` (.svg)")
	cli.QuietFlag(cmd, "print no progress")
	f.BoolVar(&c.version, "version", false, "print the version and exit")
	cli.Group(cmd, "Output", "json", "markdown", "plot", "log", "quiet")
}

// settle takes the arguments, parses the flags that are texts, sets defaults that depend on other
// flags, and returns everything that is wrong.
func (c *command) settle(cmd *cobra.Command, args []string) (problems []string) {
	switch {
	case c.Synthetic && len(args) > 0:
		problems = append(problems, "either a DATASET or --synthetic, not both")
	case !c.Synthetic && len(args) == 0:
		problems = append(problems, "no DATASET given; --synthetic needs none")
	case len(args) > 1:
		problems = append(problems, fmt.Sprintf("one DATASET at a time, not %d: %q", len(args), args))
	case len(args) == 1:
		c.Path = args[0]
	}
	if !c.Synthetic && !cmd.Flags().Changed("delay") {
		c.Delay = 0
	}
	if cmd.Flags().Changed("batches") && !cmd.Flags().Changed("min-time") {
		c.MinTime = 0
	}
	if len(c.Tables) == 0 && cmd.Flags().Changed("train-step") {
		c.Tables = []string{tableGuide}
	}
	if slices.Contains(c.Tables, "all") {
		c.Tables = allTables
	}
	if c.markdown && cli.AsJSON(cmd) {
		problems = append(problems, "one of --json and --markdown")
	}
	for _, f := range c.outputs() {
		if f.name != "" {
			problems = append(problems, cli.EndsIn(f.flag, f.name, f.endings...)...)
		}
	}
	var err error
	if c.Shape, err = parseShape(c.shape); err != nil {
		problems = append(problems, "--shape: "+err.Error())
	}
	problems = append(problems, c.Cache.Settle(args)...)
	if c.budget != "" {
		n, err := units.ParseBytes(c.budget)
		if err != nil || n < 1 || n > math.MaxInt {
			problems = append(problems, fmt.Sprintf("--budget: %q is not a size; write it like 512MiB", c.budget))
		}
		c.Budget = int(n)
	}
	return append(problems, c.problems()...)
}

// output is a file that a flag asks for, with the endings its name may have.
type output struct {
	flag, name string
	endings    []string
}

// outputs returns the files that the flags may ask for.
func (c *command) outputs() []output {
	return []output{{"--plot", c.plot, []string{".svg"}}, {"--log", c.Log, logFormats}}
}

// run measures and prints the report. After Ctrl-C, the rows that were finished are still printed:
// they may have taken minutes.
func (c *command) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	for _, f := range c.outputs() {
		if f.name == "" {
			continue
		}
		if err := cli.CheckWrite(f.name); err != nil {
			return err
		}
	}
	report, err := Run(ctx, c.Options, cli.ProgressOf(cmd, "loadbench"))
	if report != nil {
		writeErr := c.print(cmd, report)
		if c.plot != "" {
			writeErr = errors.Join(writeErr, report.WritePlot(c.plot))
		}
		if err == nil || ctx.Err() != nil {
			err = writeErr
		}
	}
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// print prints the report in the format that was asked for.
func (c *command) print(cmd *cobra.Command, r *Report) error {
	text := r.Text
	if c.markdown {
		text = r.Markdown
	}
	return cli.Print(cmd, r, text)
}
