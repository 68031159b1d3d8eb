package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is the error of an expression that has a syntax error, that does not fit the fields of a
// Source, or that has no value for a record.
type Error struct {
	Text   string // the expression
	At     int    // the byte in it that the Error is about
	Reason string

	prefix string // "filter: "
}

// Column returns the position of the error in the expression, in characters from 1.
func (e *Error) Column() int { return utf8.RuneCountInString(e.Text[:e.At]) + 1 }

// Error names the position, and marks it below the line of the expression.
func (e *Error) Error() string {
	first := strings.LastIndexByte(e.Text[:e.At], '\n') + 1
	line, _, _ := strings.Cut(e.Text[first:], "\n")
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, e.Text[first:e.At])
	return fmt.Sprintf("%scolumn %d: %s\n  %s\n  %s^", e.prefix, e.Column(), e.Reason, line, indent)
}

// failure is an error at a position. The code that finds the error does not have the
// expression's text; explain adds the text.
type failure struct {
	at     int
	reason string
}

func (f failure) Error() string { return f.reason }

func failf(at int, format string, args ...any) error {
	return failure{at, fmt.Sprintf(format, args...)}
}

// explain adds the text of the expression to a failure.
func explain(err error, prefix, text string) error {
	if f, ok := err.(failure); ok {
		return &Error{Text: text, At: f.at, Reason: f.reason, prefix: prefix}
	}
	return err
}
