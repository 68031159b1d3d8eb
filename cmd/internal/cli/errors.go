package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError is a wrong command line: exit code 2.
type UsageError struct {
	Arguments string   // the problem with the number of arguments; "" if none
	Problems  []string // other problems, a sentence each
}

// Usage returns a UsageError with these problems, or nil if there are none.
func Usage(problems ...string) error {
	if len(problems) == 0 {
		return nil
	}
	return &UsageError{Problems: problems}
}

// Needs returns the PreRunE of a command that takes exactly one argument for each name.
func Needs(names ...string) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error { return CheckArguments(args, names...) }
}

// CheckArguments returns a UsageError unless args has exactly one argument for each name, and none
// of them is empty. An empty argument usually is an unset variable of a script.
func CheckArguments(args []string, names ...string) error {
	if len(args) == len(names) && !slices.Contains(args, "") {
		return nil
	}
	return Usage(fmt.Sprintf("needs %s, and not %q", strings.Join(names, " and "), args))
}

func (e *UsageError) Error() string {
	all := e.Problems
	if e.Arguments != "" {
		all = append([]string{e.Arguments}, all...)
	}
	if len(all) == 1 {
		return all[0]
	}
	return "wrong usage:\n  " + strings.Join(all, "\n  ")
}

// SkippedError says that the work was completed, but not for every input: exit code 3, so that a
// script can tell this from failure and from success.
type SkippedError struct {
	Message string
}

func (e *SkippedError) Error() string { return e.Message }
