// Package htmlpage is the frame of the pages that commands write: one file that fetches nothing, runs no script, and
// suits phones and dark mode.
//
// It stands in for html/template, which finds methods by their names: a program that links it keeps every exported
// method of every type, which made penstock 14 MB larger.
package htmlpage

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
)

//go:embed frame.html
var frame string

// HTML is text that a [Body] takes as it is: the caller has escaped what comes from elsewhere.
type HTML string

// Body collects what stands in the body of a page. The zero value is empty.
type Body struct {
	text strings.Builder
}

// Add appends format, in which {} stands for the next value: HTML is taken as it is, and everything else as
// [Escape] spells it. It panics if there are more or fewer values than {}.
func (b *Body) Add(format HTML, values ...any) {
	parts := strings.Split(string(format), "{}")
	if len(parts) != len(values)+1 {
		panic(fmt.Sprintf("htmlpage: %d values for %q", len(values), format))
	}
	for i, part := range parts {
		b.text.WriteString(part)
		if i < len(values) {
			b.text.WriteString(Escape(values[i]))
		}
	}
}

// HTML returns what was added.
func (b *Body) HTML() HTML { return HTML(b.text.String()) }

// Escape returns a value as [fmt.Sprint] prints it, for a place between elements or in an attribute within double
// quotes. Control characters are spelled as on a terminal.
func Escape(v any) string {
	if text, ok := v.(HTML); ok {
		return string(text)
	}
	return html.EscapeString(shell.Lines(fmt.Sprint(v)))
}

// Write writes a page. Style is CSS in addition to that of the frame.
func Write(w io.Writer, title string, style HTML, body *Body) error {
	var page Body
	page.Add(HTML(frame), title, style, body.HTML())
	if _, err := io.WriteString(w, page.text.String()); err != nil {
		return fmt.Errorf("htmlpage: %w", err)
	}
	return nil
}
