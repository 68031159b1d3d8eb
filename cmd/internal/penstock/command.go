// Package penstock has the command penstock, which is all other programs in one binary: the program
// that the Python wheel ships. Each program is a subcommand of penstock. The help texts are written
// for the single programs, so prefix rewrites "preprocess ..." to "penstock preprocess ..." in
// them; this way a command from the help works as typed in either binary.
package penstock

import (
	"regexp"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/change"
	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/cmd/internal/demo"
	"github.com/penstock/penstock/cmd/internal/doctor"
	"github.com/penstock/penstock/cmd/internal/feed"
	"github.com/penstock/penstock/cmd/internal/inspect"
	"github.com/penstock/penstock/cmd/internal/inspect/diff"
	"github.com/penstock/penstock/cmd/internal/loadbench"
	"github.com/penstock/penstock/cmd/internal/preprocess"
	"github.com/penstock/penstock/internal/version"
)

const long = `Load training data for PyTorch, JAX, NumPy and Go, and turn raw samples into datasets: HDF5, Zarr, or
folders of NumPy files.`
const examples = `  penstock demo                                    # the first minute: images, a dataset, a report, a network
  penstock preprocess photos/ photos.h5 --resize 256 --crop 224
  penstock inspect photos.h5
  penstock loadbench photos.h5
  penstock doctor                                  # what this machine has, and what is missing`

// own lists the constructors of commands that exist in penstock only. Each file of this package
// that has such a command appends to it in init.
var own []func() *cobra.Command

// Command returns the tree of all commands.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use: "penstock", Short: "Make datasets and load them", Long: long, Example: examples,
		Version: version.Version(), DisableFlagsInUseLine: true,
	}
	commands := []*cobra.Command{preprocess.Command(), inspect.Command(), loadbench.Command(), feed.Command()}
	for _, c := range commands {
		prefix(c)
	}
	root.AddCommand(commands...)
	root.AddCommand(change.Command(), change.Delete(), change.Select(), change.Log(), change.Tag(),
		change.Restore(), change.Prune(), compare(), demo.Command(Command), doctor.Command())
	for _, command := range own {
		root.AddCommand(command())
	}
	root.AddCommand(topics()...)
	return root
}

// compare returns the command diff, which is also a subcommand of inspect. Below inspect, the
// parent fetches datasets of URLs before a subcommand runs; here compare does that itself.
func compare() *cobra.Command {
	c := diff.Command()
	var cache datasetarg.Cache
	cache.URLFlags(c.Flags())
	check := c.PreRunE
	c.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return err
		}
		if err := cli.Usage(cache.Settle(args)...); err != nil {
			return err
		}
		return cache.Local(cmd.Context(), args, cli.ProgressOf(cmd, "diff").Note)
	}
	c.PostRun = func(*cobra.Command, []string) { cache.Close() }
	c.Example = "  penstock diff out/flat@1 out/flat\n  penstock diff --data out/flat out/photos.h5"
	return c
}

// examplesOf matches the name of a program where a command line may begin: at the start, after a
// space or an opening parenthesis. Examples contain commands only, while running text says
// "preprocess" as a verb, too; so namesOf matches a program's name only before a flag or a
// subcommand.
var (
	examplesOf = regexp.MustCompile(`(^|[\s(])((?:preprocess|inspect|loadbench|feed) )`)
	namesOf    = regexp.MustCompile(
		`(^|[\s(])((?:preprocess|inspect|loadbench|feed) (?:--[a-z]|(?:merge|normalize|cache|show|stats|preview|report|verify|diff|filter|join|layout|view)\b))`)
)

// prefix puts "penstock " before the names of programs in the help of a command and its
// subcommands, also within a pipe.
func prefix(c *cobra.Command) {
	c.Example = examplesOf.ReplaceAllString(c.Example, "${1}penstock $2")
	c.Long = namesOf.ReplaceAllString(c.Long, "${1}penstock $2")
	for _, sub := range c.Commands() {
		prefix(sub)
	}
}
