// Package penstock is the command penstock, whose subcommands are all others.
package penstock

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/demo"
	"github.com/penstock/penstock/cmd/internal/doctor"
	"github.com/penstock/penstock/cmd/internal/feed"
	"github.com/penstock/penstock/cmd/internal/inspect"
	"github.com/penstock/penstock/cmd/internal/loadbench"
	"github.com/penstock/penstock/cmd/internal/preprocess"
)

const long = `Turn raw samples into datasets that training reads at the speed of memory: HDF5, Zarr, or folders of
NumPy files. The same commands exist as programs of their own.`

const examples = `  penstock demo                                    # the first minute: images, a dataset, a report, a network
  penstock preprocess photos/ photos.h5 --resize 256 --crop 224
  penstock inspect photos.h5
  penstock loadbench photos.h5
  penstock doctor                                  # what this machine has, and what is missing`

// Command returns the tree of all commands.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use: "penstock", Short: "Make datasets and load them", Long: long, Example: examples,
		Version: cli.Version(), DisableFlagsInUseLine: true,
	}
	commands := []*cobra.Command{preprocess.Command(), inspect.Command(), loadbench.Command(), feed.Command()}
	for _, c := range commands {
		prefixExamples(c, c.Name())
	}
	root.AddCommand(commands...)
	root.AddCommand(demo.Command(Command), doctor.Command())
	return root
}

// prefixExamples makes the examples of a program those of a subcommand: "name ..." becomes
// "penstock name ...", also after a pipe.
func prefixExamples(c *cobra.Command, name string) {
	lines := strings.Split(c.Example, "\n")
	for i, line := range lines {
		if text := strings.TrimLeft(line, " "); strings.HasPrefix(text, name+" ") {
			lines[i] = line[:len(line)-len(text)] + "penstock " + text
		}
		lines[i] = strings.ReplaceAll(lines[i], "| "+name+" ", "| penstock "+name+" ")
	}
	c.Example = strings.Join(lines, "\n")
	for _, sub := range c.Commands() {
		prefixExamples(sub, name)
	}
}
