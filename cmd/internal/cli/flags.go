package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock/penstock/internal/suggest"
)

// flagError turns cobra's first complaint about args into a UsageError with all problems. Cobra
// stops at the first problem, so flagError parses the arguments again without the wrong flags, and
// then runs the command's own check on the flags that could be set.
//
// If a flag is unknown, nothing is said about the number of arguments: the unknown flag's value
// would be counted as an argument.
func flagError(root *cobra.Command, args []string, first error) error {
	cmd, rest, err := root.Root().Find(args)
	if err != nil {
		return Usage(first.Error())
	}
	problems := parseAll(cmd.Flags(), rest)
	var usage *UsageError
	if cmd.PreRunE == nil || !errors.As(cmd.PreRunE(cmd, cmd.Flags().Args()), &usage) {
		usage = new(UsageError)
	}
	if hasUnknown(problems) {
		usage.Arguments = ""
	}
	usage.Problems = append(problems, usage.Problems...)
	if len(usage.Problems) == 0 {
		usage.Problems = []string{first.Error()}
	}
	return usage
}

// parseAll sets every flag of args that can be set, and returns the problems of the other flags.
// Each round removes one argument that could not be parsed and starts over. Wrong values do not
// end a round; they are collected in the last round.
func parseAll(flags *pflag.FlagSet, args []string) (problems []string) {
	args = append([]string(nil), args...)
	for {
		var values []string
		err := flags.ParseAll(args, func(f *pflag.Flag, value string) error {
			if flags.Set(f.Name, value) != nil {
				_ = f.Value.Set(f.DefValue) // a failed Set may have left part of the value
				values = append(values, fmt.Sprintf("--%s %q: %s", f.Name, value, unset(f.Value.Type(), value)))
			}
			return nil
		})
		if err == nil {
			return append(problems, values...)
		}
		text, name := describe(flags, err)
		problems = append(problems, text)
		at := find(args, name)
		if at < 0 {
			return problems
		}
		args = append(args[:at], args[at+1:]...)
	}
}

// unknownFlag begins the problem of an unknown flag, by which hasUnknown recognizes it.
const unknownFlag = "unknown flag "

// hasUnknown reports whether an unknown flag is among the problems. Then it is not known whether
// the word after the flag is its value or an argument.
func hasUnknown(problems []string) bool {
	for _, p := range problems {
		if strings.HasPrefix(p, unknownFlag) {
			return true
		}
	}
	return false
}

// describe rewords an error of pflag. name is the flag as it stands in the arguments, "" if
// unknown.
func describe(flags *pflag.FlagSet, err error) (text, name string) {
	var missing *pflag.NotExistError
	var required *pflag.ValueRequiredError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &missing):
		name = "--" + missing.GetSpecifiedName()
		if short := missing.GetSpecifiedShortnames(); short != "" {
			name = "-" + short
		}
		return unknownFlag + name + suggestion(flags, missing.GetSpecifiedName()), name
	case errors.As(err, &required):
		name = "--" + required.GetFlag().Name
		return name + " needs a value", name
	case errors.As(err, &syntax):
		name = syntax.GetSpecifiedFlag()
		return "bad flag syntax " + name, name
	}
	return err.Error(), ""
}

// find returns the index in args of the flag that pflag complained about, -1 if it is not found.
// The flag may stand alone, with =VALUE, or at the end of a group of single letters.
func find(args []string, name string) int {
	for i, a := range args {
		if a == name || strings.HasPrefix(a, name+"=") || strings.HasPrefix(a, "-") && strings.HasSuffix(a, name) {
			return i
		}
	}
	return -1
}

// unset returns why a flag of a kind cannot have the value, in words: pflag's own errors are the
// errors of package strconv.
func unset(kind, value string) string {
	switch kind {
	case "int", "int64", "uint", "uint64":
		if _, err := strconv.ParseInt(value, 0, 64); errors.Is(err, strconv.ErrRange) {
			return "out of range"
		}
		return "not a whole number"
	case "bool":
		return "not true or false"
	case "duration":
		return "not a duration such as 5ms or 2s"
	}
	return "not a " + kind
}

// suggestion proposes the known flag that is most like name: at most two letters differ, or one
// name is the other name with more words. Names of one or two letters are like too many flags.
func suggestion(flags *pflag.FlagSet, name string) string {
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		near := suggest.Distance(name, f.Name) <= 2 || strings.HasPrefix(name, f.Name+"-") ||
			strings.HasPrefix(f.Name, name+"-")
		if near && !f.Hidden {
			known = append(known, f.Name)
		}
	})
	best := suggest.Closest(name, known)
	if best == "" || len(name) < 3 {
		return ""
	}
	return "; did you mean --" + best + "?"
}
