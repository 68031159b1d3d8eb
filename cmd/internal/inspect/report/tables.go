package report

import (
	"strconv"

	"github.com/penstock/penstock/cmd/internal/inspect/stats"
)

// column is the head of a column. Columns of numbers are flush right.
type column struct {
	title  string
	number bool
}

// openTable begins a table that scrolls if it is wider than the page. label names it for screen
// readers.
func openTable(b *body, label string, columns ...column) {
	b.Add("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n<thead><tr>", label)
	for _, c := range columns {
		class := markup("")
		if c.number {
			class = ` class="n"`
		}
		b.Add(`<th scope="col"{}>{}</th>`, class, c.title)
	}
	b.Add("</tr></thead>\n<tbody>")
}

// closeTable ends the table.
func closeTable(b *body) { b.Add("</tbody>\n</table></div>\n") }

// The number of rows that the tables of a report have at most.
const (
	shownLabels  = 60
	shownClasses = 100
	evenClasses  = 12 // more labels with equal counts become one sentence
)

// labelText returns the name of a label, or its value.
func labelText(l stats.Label) string {
	if l.Name != "" {
		return l.Name
	}
	return strconv.FormatInt(l.Value, 10)
}
