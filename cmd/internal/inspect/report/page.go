package report

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
)

// frame is one file that fetches nothing, runs no script, and suits phones and dark mode. It stands in for
// html/template, which finds methods by their names: a program that links it keeps every exported method of every type,
// which made penstock 14 MB larger.
//
//go:embed frame.html
var frame string

// markup is HTML that a [body] takes as it is: its author has escaped every text from elsewhere.
// The type keeps plain strings, which may come from a dataset, from being taken for HTML.
type markup string

// body collects the content of a page. The zero value is empty.
type body struct {
	text strings.Builder
}

// Add appends format, in which each {} stands for the next value: markup as it is, everything else
// escaped. It panics if the numbers of {} and values differ.
func (b *body) Add(format markup, values ...any) {
	parts := strings.Split(string(format), "{}")
	if len(parts) != len(values)+1 {
		panic(fmt.Sprintf("page: %d values for %q", len(values), format))
	}
	for i, part := range parts {
		b.text.WriteString(part)
		if i < len(values) {
			b.text.WriteString(escape(values[i]))
		}
	}
}

// HTML returns the HTML that was added.
func (b *body) HTML() markup { return markup(b.text.String()) }

// escape returns a value for a place between elements or in an attribute in double quotes. Control
// characters are spelled as on a terminal.
func escape(v any) string {
	if text, ok := v.(markup); ok {
		return string(text)
	}
	return html.EscapeString(shell.Lines(fmt.Sprint(v)))
}

// writePage writes a page. style is CSS in addition to the frame's.
func writePage(w io.Writer, title string, style markup, content *body) error {
	var page body
	page.Add(markup(frame), title, style, content.HTML())
	if _, err := io.WriteString(w, page.text.String()); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}
