package cli

import "strings"

// UsageError is a command line that makes no sense: exit code 2.
type UsageError struct {
	Arguments string   // the problem with the number of arguments; "" if none
	Problems  []string // other problems, a sentence each
}

// Usage returns a UsageError with these problems, nil if there are none.
func Usage(problems ...string) error {
	if len(problems) == 0 {
		return nil
	}
	return &UsageError{Problems: problems}
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

// SkippedError says that the work was done but not for every input: exit code 3.
type SkippedError struct {
	Message string
}

func (e *SkippedError) Error() string { return e.Message }
