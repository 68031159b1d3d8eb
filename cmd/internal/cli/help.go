package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupKey is the annotation that has a flag's heading and, at a command, the list of headings.
const groupKey = "penstock-group"

// Group puts the named flags of cmd under a heading of its help. Headings appear in the order of
// the calls. Flags without a heading follow under "Other", or under "Flags" if there are no
// headings.
func Group(cmd *cobra.Command, heading string, names ...string) {
	for _, name := range names {
		if err := cmd.Flags().SetAnnotation(name, groupKey, []string{heading}); err != nil {
			panic("cli: " + err.Error())
		}
	}
	if cmd.Annotations == nil {
		cmd.Annotations = make(map[string]string)
	}
	cmd.Annotations[groupKey] += heading + "\n"
}

// help prints a command's purpose, usage, examples, subcommands and flags. It replaces cobra's
// template, which neither groups flags nor fits lines to the terminal.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	text = strings.TrimSpace(text)
	if !cmd.HasParent() {
		text += fmt.Sprintf("\nShell completion: %s completion bash|zsh|fish|powershell", cmd.Name())
	}
	if cmd.IsAdditionalHelpTopicCommand() {
		fmt.Fprintln(w, reflow(text, width(w)))
		return
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n", reflow(text, width(w)))
	if cmd.Runnable() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND ...\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", Fit(strings.Trim(cmd.Example, "\n"), TerminalWidth(w)))
	}
	helpList(w, cmd, "Commands", (*cobra.Command).IsAvailableCommand)
	helpList(w, cmd, "Topics", (*cobra.Command).IsAdditionalHelpTopicCommand)
	helpFlags(w, cmd)
}

// helpOf runs "help NAME...": it prints the help of the command or topic that args name.
func helpOf(cmd *cobra.Command, args []string) error {
	at := cmd.Root()
	for _, name := range args {
		i := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
		if i < 0 {
			return Usage(fmt.Sprintf("no help on %q; %s --help lists commands and topics", strings.Join(args, " "),
				at.CommandPath()))
		}
		at = at.Commands()[i]
	}
	return at.Help()
}

// helpList prints the subcommands for which belongs holds, below a heading; nothing if there are
// none.
func helpList(w io.Writer, cmd *cobra.Command, heading string, belongs func(*cobra.Command) bool) {
	room := TerminalWidth(w)
	for _, c := range cmd.Commands() {
		if !belongs(c) || c.Name() == "help" {
			continue
		}
		if heading != "" {
			fmt.Fprintf(w, "\n%s:\n", heading)
			heading = ""
		}
		fmt.Fprintln(w, Fit(fmt.Sprintf("  %-*s  %s", c.NamePadding(), c.Name(), c.Short), room))
	}
}

// helpFlags prints the flags by heading. Within a heading, the order in which the flags were
// declared stays, since related flags are declared together.
func helpFlags(w io.Writer, cmd *cobra.Command) {
	sets, rest := make(map[string]*pflag.FlagSet), "Other"
	if cmd.Annotations[groupKey] == "" {
		rest = "Flags"
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			f.Usage = "print this help"
		}
		heading := rest
		if g := f.Annotations[groupKey]; len(g) > 0 {
			heading = g[0]
		}
		if sets[heading] == nil {
			sets[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			sets[heading].SortFlags = false
		}
		sets[heading].AddFlag(f)
	})
	for _, heading := range append(strings.Split(strings.TrimSuffix(cmd.Annotations[groupKey], "\n"), "\n"), rest) {
		if set := sets[heading]; set != nil && set.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", heading, set.FlagUsagesWrapped(width(w)))
		}
	}
}
