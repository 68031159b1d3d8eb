package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/version"
)

const long = `Load DATASET in a separate process and hand batches to training processes through shared
memory. Python's penstock.DataLoader starts feed automatically. With --socket, feed serves any number
of trainers, such as the ranks of one host, each with a batch size, order, seed, rank and transforms
of its own. DATASET is a flat folder, Zarr or an HDF5 file, local or a URL; several are concatenated.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.`

const examples = `  feed out/flat --socket /run/user/1000/feed
  python3 -c 'import penstock; print(next(iter(penstock.DataLoader("out/flat", 256, output="numpy"))))'`

// command is the command line.
type command struct {
	datasets       []string
	socket         string
	records        bool
	client         inherited
	workers        int
	quiet, version bool
	progress       string
	cache          datasetarg.Cache
	refusal        error // of flags that a client has given; nil if there is none
}

// Command returns the command feed, for cli.Main.
func Command() *cobra.Command {
	c := new(command)
	cmd := cli.Command(&cobra.Command{
		Use: "feed [flags] DATASET...", Short: "Hand batches to a training process", Long: long, Example: examples,
		PreRunE: func(_ *cobra.Command, args []string) error { return c.check(args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.version {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "feed %s, %s %s/%s\n", version.Version(), runtime.Version(), runtime.GOOS,
					runtime.GOARCH)
				return err
			}
			if c.records {
				return serveRecords(cmd.Context(), &c.cache, cmd.InOrStdin(), cmd.OutOrStdout())
			}
			c.cache.Events = c.progress == "json"
			return c.run(cmd.Context(), cli.ProgressOf(cmd, cmd.Name()))
		},
	})
	f := cmd.Flags()
	f.StringVar(&c.socket, "socket", "", "serve clients of this user on a unix socket at `PATH`")
	f.IntVar(&c.client.fd, "fd", -1, "serve one client on the open file descriptor `N`")
	f.StringToIntVar(&c.client.files, "inherit", nil,
		"with --fd: open files of the client, `NAME=N,...` of memory and arrays")
	f.IntSliceVar(&c.client.functions, "functions", nil, "with --fd: descriptors `M,N...` for the client's functions")
	f.BoolVar(&c.records, "records", false,
		"describe and read the DATASETs that a program names on stdin, to stdout")
	f.IntVar(&c.workers, "workers", 0,
		"`N` workers for clients that do not choose (default what makes their loops fastest)")
	f.StringVar(&c.progress, "progress", "auto", "progress on standard error: `FORMAT` is auto, json")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "print errors only")
	c.cache.Flags(f)
	f.BoolVar(&c.version, "version", false, "print the version and exit")
	return cmd
}

// check takes the arguments, or returns everything that is wrong with them. Exactly one of
// --records, --socket and --fd says whom feed serves.
func (c *command) check(args []string) error {
	if c.version {
		return nil
	}
	var problems []string
	if c.datasets = args; len(args) == 0 && !c.records {
		problems = append(problems, "it takes a DATASET, and there is none")
	}
	switch served := c.socket != "" || c.client.fd >= 0; {
	case c.records && (served || len(args) > 0):
		problems = append(problems,
			"--records reads the names of DATASETs from stdin, and starts no server: leave DATASET, --socket and --fd out")
	case !c.records && (c.socket == "") == (c.client.fd < 0):
		problems = append(problems, "--socket or --fd is required; in Python, penstock.DataLoader starts feed automatically")
	}
	problems = append(problems, c.client.check()...)
	if unused := c.cache.Settle(args); c.client.fd < 0 {
		problems = append(problems, unused...)
	} else if len(unused) > 0 {
		c.refusal = errors.New(strings.Join(unused, "; ")) // for the client, who does not see what feed prints
	}
	if c.progress != "auto" && c.progress != "json" {
		problems = append(problems, fmt.Sprintf("--progress %s: must be auto or json", c.progress))
	}
	if c.quiet && c.progress != "auto" {
		problems = append(problems, "--quiet, --progress "+c.progress+": choose one")
	}
	if c.workers < 0 {
		problems = append(problems, fmt.Sprintf("--workers %d: must not be negative", c.workers))
	}
	return cli.Usage(problems...)
}

// run serves the clients of a socket, or the client that has started this process.
func (c *command) run(ctx context.Context, p *cli.Progress) error {
	if c.socket != "" {
		return c.listen(ctx, p)
	}
	t, err := c.client.open()
	if err != nil {
		return err
	}
	functions, err := c.client.workers()
	if err != nil {
		return errors.Join(err, t.connection().Close())
	}
	if functions != nil {
		defer functions.memory.Close()
	}
	return server{c.datasets, c.workers, &c.cache, functions, c.refusal}.serve(ctx, t)
}
