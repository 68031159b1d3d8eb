package cli

import "strings"

// UsageError is a command line that makes no sense: exit code 2.
type UsageError struct {
	Problems []string // one or more sentences
}

// Usage returns a UsageError with these problems, nil if there are none.
func Usage(problems ...string) error {
	if len(problems) == 0 {
		return nil
	}
	return &UsageError{problems}
}

func (e *UsageError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0]
	}
	return "wrong usage:\n  " + strings.Join(e.Problems, "\n  ")
}

// SkippedError says that the work was done but not for every input: exit code 3.
type SkippedError struct {
	Message string
}

func (e *SkippedError) Error() string { return e.Message }
