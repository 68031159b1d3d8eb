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

// flagError turns the first complaint about args into all of them: cobra stops at the
// first, so the rest is parsed again without what was wrong, and then checked.
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

// parseAll sets every flag of args that can be set and returns the problems of the others.
func parseAll(flags *pflag.FlagSet, args []string) (problems []string) {
	args = append([]string(nil), args...)
	for {
		var values []string
		err := flags.ParseAll(args, func(f *pflag.Flag, value string) error {
			if flags.Set(f.Name, value) != nil {
				_ = f.Value.Set(f.DefValue) // instead of what a failed Set leaves
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

const unknownFlag = "unknown flag "

// hasUnknown says that nobody knows which argument is a flag's value and which is not.
func hasUnknown(problems []string) bool {
	for _, p := range problems {
		if strings.HasPrefix(p, unknownFlag) {
			return true
		}
	}
	return false
}

// describe words a parse error; name is the flag as it stands in the arguments.
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

// find returns where the flag name stands in args, -1 if nowhere.
func find(args []string, name string) int {
	for i, a := range args {
		if a == name || strings.HasPrefix(a, name+"=") || strings.HasPrefix(a, "-") && strings.HasSuffix(a, name) {
			return i
		}
	}
	return -1
}

// unset says why a flag of that kind cannot have the value.
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

// suggestion names the known flag that is most like name.
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
