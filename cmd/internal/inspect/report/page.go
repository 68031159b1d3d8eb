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

// markup is text that a [body] takes as it is: the caller has escaped what comes from elsewhere.
type markup string

// body collects what stands in the body of a page. The zero value is empty.
type body struct {
	text strings.Builder
}

// Add appends format, in which {} stands for the next value: markup is taken as it is, and everything else as
// [escape] spells it. It panics if there are more or fewer values than {}.
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

// HTML returns what was added.
func (b *body) HTML() markup { return markup(b.text.String()) }

// escape returns a value as [fmt.Sprint] prints it, for a place between elements or in an attribute within double
// quotes. Control characters are spelled as on a terminal.
func escape(v any) string {
	if text, ok := v.(markup); ok {
		return string(text)
	}
	return html.EscapeString(shell.Lines(fmt.Sprint(v)))
}

// writePage writes a page. Style is CSS in addition to the CSS of the frame.
func writePage(w io.Writer, title string, style markup, content *body) error {
	var page body
	page.Add(markup(frame), title, style, content.HTML())
	if _, err := io.WriteString(w, page.text.String()); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}
